"""Analysis of one scan and its history: pure functions over arrays and frozen values."""
