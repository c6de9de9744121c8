"""Changes from webhooks of GitHub and GitLab."""

from agents.webhooks.mapping import load_service_map
from agents.webhooks.server import serve

__all__ = ["load_service_map", "serve"]
