"""The command ``smidgen feedback``: an answer to an event, or what all answers say."""

from __future__ import annotations

import click

from agents.commands.feedback.answer import answer
from agents.commands.feedback.compare import compare
from agents.commands.feedback.export import export
from agents.commands.feedback.labels import labelling
from agents.commands.feedback.listing import listing
from agents.commands.feedback.numbers import precision, thresholds

_EXAMPLES = """\b
Examples:
  smidgen feedback c0ffee true --comment 'the new parser'
  smidgen feedback c0ffee duplicate --of 8f2c11d
  smidgen feedback c0ffee expected --until 30d
  smidgen feedback c0ffee cause 4be1d02       the change that did it
  smidgen feedback list --service shop
  smidgen feedback precision                  which share of events is right
  smidgen feedback compare live --threshold 0.2
"""


class _AnswerFirst(click.Group):
    """A group whose first argument may be an event's id, which is answered."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand of that name, else the answer with all arguments."""
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "ID", answer, args

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Say both ways of use."""
        return ["ID VERDICT [OPTIONS]  |  COMMAND [ARGS]..."]


@click.group(cls=_AnswerFirst, epilog=_EXAMPLES)
def feedback() -> None:
    """Answer the event ID: true, false, cost-shift, expected, fixed, duplicate, acknowledged or cause.

    The latest answer is the event's state. docs/feedback.md has what each does; `smidgen feedback ID --help`
    has the options of an answer.
    """


for _command in (listing, precision, thresholds, compare, labelling, export):
    feedback.add_command(_command)
