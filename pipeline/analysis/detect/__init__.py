"""Change points in a matrix of series: pure functions over arrays."""
