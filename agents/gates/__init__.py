"""Which subroutines a gate switches, read from Python source."""
