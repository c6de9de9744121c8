"""How well ways of grouping put causes together."""
