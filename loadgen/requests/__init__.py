"""Requests of two releases whose truth is known, and how often a change is seen and named."""
