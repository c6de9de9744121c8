"""Stages on Kafka: the Faust app, the one worker loop, dead-letters."""
