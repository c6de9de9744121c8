"""Cost that only moved between subroutines: pure functions over stacks (FBDetect §5.4.6)."""
