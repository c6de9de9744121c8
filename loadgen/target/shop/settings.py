"""Settings of the shop, the same for every release unless a commit says otherwise."""

KEEPALIVE_S = 30.0
SHUTDOWN_S = 1.0
PASSWORD_ROUNDS = 60_000
PAGE_SIZE = 24
SNIPPETS = 8
"""How many search hits are shown with a highlighted snippet."""
MAX_HITS = 1_150
"""No more hits than these are put in order."""
FEED_LEVEL = 6
"""Compression level of the partner feed."""
