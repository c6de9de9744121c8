"""Readers of profile files: bytes in, stacks with counts out, no I/O."""
