"""Quotas of a service: limits, admission, cardinality."""
