"""Former name of ``python -m smidgen.inprocess``."""

import warnings

from agents.inprocess.program import main

if __name__ == "__main__":
    warnings.warn("use python -m smidgen.inprocess", DeprecationWarning, stacklevel=1)
    main()
