"""Lines that are no access log, or not as the server wrote it: what they are, and what to give."""

from __future__ import annotations

import re

_FOREIGN = (
    (r'\{"log": *"', "Docker's file of a container: give what `docker logs NAME` prints"),
    (r"\{.*\"MESSAGE\"\s*:", "journald's JSON: give what `journalctl -o cat` prints"),
    (r"\{.*\"_raw\"\s*:", "an export of Splunk: give the texts in _raw, a line each"),
    (
        r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] ",
        "a file of Kubernetes' containers (CRI): give what `kubectl logs NAME` prints, or cut -d' ' -f4-",
    ),
    (r"\[\s*\{", "a JSON array: write one object a line, as `jq -c '.[]'` does"),
    (r'[^{"]{1,200}\{"', "JSON after other text: give each line from { on, as sed 's/^[^{]*//' prints it"),
    (r"[{\[](?:.*,)?\s*$", "JSON over several lines: write one object a line, as `jq -c '.[]'` does"),
    (r"\d{4}/\d\d/\d\d [\d:]+ \[\w+\] \d+#\d+:", "nginx' error log: give its access log"),
    (r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d [\d:.]+ \d{4}\] \[", "Apache's error log: give its access log"),
    (r'Started [A-Z]+ "', "Rails' log, with several lines a request: Lograge writes one"),
    (r'.*"[A-Z]+ \S+ HTTP/', "a request whose time does not stand in brackets before it: give --format"),
    (r"\d+ \d{12} eni-", "a flow log of Amazon's network, which has no requests"),
    (
        r"(?![{\[])(?:[^,\t]+[,\t]){4,}[^,\t]*$",
        "CSV: give lines as the server wrote them, or one JSON object a line",
    ),
)
"""Patterns of lines, and what they are."""

UNKNOWN = "is --format right?"


def explain_line(line: str) -> str:
    """Return what a line is that no format reads, and what to give instead."""
    return next((what for pattern, what in _FOREIGN if re.match(pattern, line)), UNKNOWN)
