"""Program that runs Apache Otava on series from standard input, in its own environment, without Smidgen.

Reads a JSON list of series and prints a JSON list of ``[indices, seconds]``, each by Otava's default.
"""

import importlib
import json
import sys
import time


def main() -> None:
    """Read all series and print the answers."""
    analysis = importlib.import_module("otava.analysis")
    answers = []
    for values in json.load(sys.stdin):
        began = time.process_time()
        try:
            changes = [int(change.index) for change in analysis.compute_change_points(values)[0]]
        except ValueError:  # version 0.8 splits some series, such as constant ones, into empty parts
            changes = []
        answers.append([changes, time.process_time() - began])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
