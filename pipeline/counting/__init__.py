"""Stacks to counts per subroutine and window: pure functions over arrays."""
