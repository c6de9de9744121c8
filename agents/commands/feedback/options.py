"""Options that commands of answered events share."""

from pipeline.commands.request import Moment, option
from pipeline.messages.fields import EARLIEST_S

events_service_option = option(metavar="S", help="Service of the events (default: all).")
since_option = option(
    EARLIEST_S,
    kind=Moment(),
    show_default=False,
    help="First change time: 30d, or ISO 8601 (default: that of the oldest event).",
)
