"""Sampler inside a Python application: no privileges, no other program, the standard library alone.

>>> import smidgen.inprocess
>>> smidgen.inprocess.start(service="shop", send_to="http://gateway:4040")  # doctest: +SKIP
True

``python -m smidgen.inprocess --service shop -- app.py ARGUMENTS`` runs a program under it.
"""

from agents.inprocess.access_log import AccessLog
from agents.inprocess.carriers import carry
from agents.inprocess.control import start, stop
from agents.inprocess.endpoints import wrap_asgi, wrap_wsgi
from agents.inprocess.frameworks import (
    StarletteMiddleware,
    aiohttp_middleware,
    django_middleware,
    watch_flask,
)
from agents.inprocess.marks import frame_metadata, set_frame_metadata
from agents.inprocess.spans import SpanProcessor, origin

__all__ = [
    "AccessLog",
    "SpanProcessor",
    "StarletteMiddleware",
    "aiohttp_middleware",
    "carry",
    "django_middleware",
    "frame_metadata",
    "origin",
    "set_frame_metadata",
    "start",
    "stop",
    "watch_flask",
    "wrap_asgi",
    "wrap_wsgi",
]

if __name__ == "__main__":
    from agents.inprocess.program import main

    main()
