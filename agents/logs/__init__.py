"""Access logs: requests by type and period, read fast and within bounds."""

from agents.logs.line_format import LineFormat, line_format, typical_line
from agents.logs.request_tally import RequestTally, TallyOptions
from agents.logs.request_type import RequestTypes

__all__ = ["LineFormat", "RequestTally", "RequestTypes", "TallyOptions", "line_format", "typical_line"]
