"""Routes of web applications: a method and a pattern of paths, however frameworks and profilers spell it."""

from pipeline.counting.routes.matching import match_type
from pipeline.counting.routes.patterns import of_braces, of_colons, of_flask, of_regex
from pipeline.counting.routes.spelling import NamedRoute, read_route, route_named

__all__ = [
    "NamedRoute",
    "match_type",
    "of_braces",
    "of_colons",
    "of_flask",
    "of_regex",
    "read_route",
    "route_named",
]
