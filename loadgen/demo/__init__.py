"""The demo: the whole pipeline on real profiles of a live service."""
