"""Every change point of one series, offline."""
