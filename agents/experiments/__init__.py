"""Experiments on a machine: benchmarks, bisection, replay."""
