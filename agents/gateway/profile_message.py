"""``POST /profiles``: a message of the topic ``profiles`` as it is (docs/schemas/profile.json).

The sampler inside Python applications sends it, since no other format has annotations of frames.
"""

from __future__ import annotations

from dataclasses import replace

import xxhash

from agents.gateway.base import Decoded, DecodeSetup, MessagePart, PushProtocol, Request, SkippedPart
from agents.gateway.profiles import OLDEST_S
from agents.profiles.message import ProfileOrigin, encode_within
from agents.profiles.profile_files import profile_key
from pipeline.files.values import service_name
from pipeline.messages.measurements import decode_profile, profile_to_json
from pipeline.model import Outgoing
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S


def decode(request: Request, setup: DecodeSetup) -> Decoded:
    """Check a message; without an id it gets one of its content, since a client may send it again."""
    profile = decode_profile(request.body, now=request.now)
    try:
        service_name(profile.service)
    except ValueError as error:
        raise InvalidMessage(f"service: {error}") from None
    if profile.end < request.now - OLDEST_S:
        raise InvalidMessage(f"end: more than {OLDEST_S / DAY_S:.0f} days ago")
    profile = replace(profile, id=profile.id or xxhash.xxh3_128_hexdigest(request.body))
    encoded, lost = encode_within(profile_to_json(profile), setup.max_message_bytes)
    skipped = (SkippedPart("oversized_stacks", f"{lost} samples of oversized stacks"),) if lost else ()
    key = profile_key(ProfileOrigin(profile.service, profile.host))
    parts = (
        MessagePart(
            Outgoing("profiles", key, part.value),
            profile.service,
            part.samples,
            f"{key}/{profile.id}/{number}",
            "cpu",
        )
        for number, part in enumerate(encoded)
    )
    return Decoded(tuple(parts), skipped)


RECEIVER = PushProtocol("smidgen", ("/profiles",), decode)
