"""Engines for tests and benches: Apache Kafka and ClickHouse's server."""
