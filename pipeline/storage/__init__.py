"""The store: one interface, ClickHouse behind it."""
