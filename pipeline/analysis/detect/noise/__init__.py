"""Noise of series: bounds before it is measured, noise of neighbours, and the prior of a service."""
