"""Process of a ClickHouse server, run by the listener within ClickHouse's library.

The package chdb is ``clickhouse-local`` as a library, and that has listened for clients since version 26.6
(``SYSTEM START LISTEN HTTP``): what answers is ClickHouse's own HTTP handler, with its users and grants.
Only the library's command-line entry can do so, not its connections, so this file loads the library alone.

Run by path, in a folder with a ``config.xml``: it prints its URL and serves until its standard input ends.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType

_LISTEN = """
SYSTEM START LISTEN HTTP;
INSERT INTO FUNCTION file('/dev/stdout', 'TSVRaw', 'url String')
    SELECT 'http://127.0.0.1:' || toString(getServerPort('http_port'));
SELECT count() FROM file('/dev/stdin', 'LineAsString')
"""
"""The last statement waits for the end of standard input, and the server answers as long as it does."""


def _library() -> ModuleType:
    # The package's own __init__ opens a connection, after which the command-line entry cannot serve.
    package = importlib.util.find_spec("chdb")
    for folder in (package and package.submodule_search_locations) or ():
        for file in Path(folder).glob("_chdb*.so"):
            spec = importlib.util.spec_from_file_location("_chdb", file)
            assert spec is not None
            assert spec.loader is not None
            library = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(library)
            return library
    raise ModuleNotFoundError("chdb is not installed")


def main() -> int:
    """Serve the folder ``data`` of the working directory; exit code 1, with an error message, on failure."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end of standard input stops the server in order
    result = _library().query(_LISTEN, "TSV", path=os.path.abspath("data"))
    if result.has_error():
        print(result.error_message(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
