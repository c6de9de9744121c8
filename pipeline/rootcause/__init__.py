"""Which change caused a regression: pure functions over stacks and changes."""
