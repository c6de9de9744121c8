"""What becomes of a reported regression: updated, resolved."""
