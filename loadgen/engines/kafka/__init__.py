"""Apache Kafka on loopback, without containers: for the tests and for ``smidgen bench faults``."""
