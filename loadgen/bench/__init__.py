"""Benchmarks: how fast this machine runs the parts that must be fast."""
