"""Dead letters: written by workers, limited, listed and replayed."""

from pipeline.worker.dlq.dead_letter import DeadLetter, Status
from pipeline.worker.dlq.limit import DeadLetterLimit, LimitConfig, TooManyDeadLetters, printable, source_of
from pipeline.worker.dlq.replay import Replay, Survey, alone, survey
from pipeline.worker.dlq.writer import REPLAY, REPLAYED_FROM, DeadLetterWriter, Rejected

__all__ = [
    "REPLAY",
    "REPLAYED_FROM",
    "DeadLetter",
    "DeadLetterLimit",
    "DeadLetterWriter",
    "LimitConfig",
    "Rejected",
    "Replay",
    "Status",
    "Survey",
    "TooManyDeadLetters",
    "alone",
    "printable",
    "source_of",
    "survey",
]
