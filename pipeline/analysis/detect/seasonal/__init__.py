"""Seasons of series: daily, weekly, and their decomposition."""
