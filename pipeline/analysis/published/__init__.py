"""Published ways of grouping a scan's candidates, kept to compare with: SOMDedup, exclusive stacks."""
