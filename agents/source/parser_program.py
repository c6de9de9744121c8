"""Program that parses sources within bounds: ``python parser_program.py FOLDER MODULE:FUNCTION SECONDS``.

Parsers are C code over what anybody committed, and some inputs cost them minutes and gigabytes. The program
reads one line of JSON, a list of questions, then their sources. It answers each with a line of JSON, what the
function returns for question and source, as soon as it is done, so that an input that ends the program costs
only itself. ``agents.source.parser_process`` starts it.
"""

from __future__ import annotations

import importlib
import json
import resource
import signal
import sys

MEMORY_BYTES = 1024**3
"""Address space of the program."""


def main(folder: str, function: str, file_s: float) -> None:
    """Answer the questions of standard input; ``file_s`` is the processor time that one source may take."""
    sys.path.insert(0, folder)
    module, _, name = function.partition(":")
    answer = getattr(importlib.import_module(module), name)
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    for question in json.loads(sys.stdin.buffer.readline()):
        source = sys.stdin.buffer.read(question["bytes"])
        signal.setitimer(signal.ITIMER_PROF, file_s)  # its signal ends the program
        sys.stdout.write(json.dumps(answer(question, source), default=list) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
