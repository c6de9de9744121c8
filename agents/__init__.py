"""Programs on hosts that sample stacks and learn of changes, and publish both."""
