"""Simulated fleet whose truth is known, the basis of every claim about accuracy."""
