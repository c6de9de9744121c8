"""``smidgen release requests``: releases compared by requests and a metric, with suspects from source."""

from agents.commands.release_requests.command import compare_requests as requests

__all__ = ["requests"]
