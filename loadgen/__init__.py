"""A service to profile, the demo, and the benchmarks."""
