"""Web applications as their source has them: routes, call graphs, and the commits behind a slower request."""

from agents.source.routes.application import Application, read_application
from agents.source.routes.call_graph import CallGraph, Reach
from agents.source.routes.imported import import_routes
from agents.source.routes.reaches import Reaches
from agents.source.routes.repository import Release, read_folder, read_reaches
from agents.source.routes.route import Route
from agents.source.routes.suspects import ChangedMethod, RequestFinding, RequestSuspect, RequestSuspects

__all__ = [
    "Application",
    "CallGraph",
    "ChangedMethod",
    "Reach",
    "Reaches",
    "Release",
    "RequestFinding",
    "RequestSuspect",
    "RequestSuspects",
    "Route",
    "import_routes",
    "read_application",
    "read_folder",
    "read_reaches",
]
