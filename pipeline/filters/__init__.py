"""What tells a regression from a false positive: pure functions over candidates."""
