"""``python -m pipeline`` is ``smidgen``."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
