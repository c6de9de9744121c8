"""``python -m pipeline`` is ``smidgen``."""

import sys

if __name__ == "__main__":
    try:
        from pipeline.cli import main

        main()
    except KeyboardInterrupt:  # before the command line could see to it
        sys.exit(130)
