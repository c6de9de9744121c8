"""Sampling policies measured on simulated services: cost against error (Atys §6)."""
