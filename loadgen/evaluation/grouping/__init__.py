"""Quality of ways of grouping candidates by cause."""
