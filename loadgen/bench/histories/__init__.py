"""Histories of benchmarks whose changes are known, watched by Smidgen, Apache Otava and benchstat."""
