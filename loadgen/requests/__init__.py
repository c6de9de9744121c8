"""Requests of two releases whose truth is known, and the rates at which changes are seen and named."""
