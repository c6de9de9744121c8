"""The fault suite: the stages as processes, a load whose counts and events are known, and what strikes."""
