"""Fault suite: the stages as processes, a load with known counts and events, and faults that strike them."""
