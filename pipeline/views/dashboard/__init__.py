"""The dashboard: regressions to look into and answer, services, flame graphs, operations, and an HTTP API.

Pages are rendered here; a browser only draws figures, follows keys and looks for what is new. Lists are pure
functions of a Snapshot in memory, so that their first byte waits for no query.
"""

from pipeline.views.dashboard.access import Login, read_networks
from pipeline.views.dashboard.app import create_app, serve
from pipeline.views.dashboard.oidc import Oidc, Provider
from pipeline.views.dashboard.session import Roles, Sessions
from pipeline.views.dashboard.site import Finding, Sources

__all__ = [
    "Finding",
    "Login",
    "Oidc",
    "Provider",
    "Roles",
    "Sessions",
    "Sources",
    "create_app",
    "read_networks",
    "serve",
]
