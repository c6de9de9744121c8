"""Sampling of a process: agent, kernels, rates."""
