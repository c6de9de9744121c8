"""How much a service may send: limits, admission, cardinality."""
