"""No client creates a topic: ``smidgen topics apply`` alone does.

Whoever asks a broker about a topic by its name lets it create one, with as many partitions as the broker
likes, unless the question says otherwise; the library's questions have no option for it.
"""

from __future__ import annotations

from functools import partial

import aiokafka.admin.client
import aiokafka.client
from aiokafka.protocol.metadata import MetadataRequest

_QUESTION = partial(MetadataRequest, allow_auto_topic_creation=False)


def never_create_topics() -> None:
    """Have all clients of this process ask about topics without creating them; may be called again."""
    for module in (aiokafka.client, aiokafka.admin.client):
        module.MetadataRequest = _QUESTION
