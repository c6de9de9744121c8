"""ClickHouse's own server, for tests and benchmarks."""
