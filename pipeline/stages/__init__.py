"""The stages: fetch, compute with pure functions, return messages."""
