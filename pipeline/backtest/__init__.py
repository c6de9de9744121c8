"""The pipeline over files: the same stages, without Kafka."""
