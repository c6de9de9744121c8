"""``smidgen bench gateway``: many agents that push to one gateway, over an outage of the broker."""
