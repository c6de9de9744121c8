"""All that speaks to Kafka: connection, security, publisher, reader, topics, consumer groups."""
