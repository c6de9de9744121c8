"""Forms (``multipart/form-data``), whose fields are profiles."""

from __future__ import annotations

import email.parser
import email.policy
from collections.abc import Mapping

from pipeline.model.errors import InvalidMessage

MAX_FIELDS = 16


def read_form(content_type: str, body: bytes) -> Mapping[str, bytes]:
    """Return the fields of a form by their names.

    Raises:
        InvalidMessage: it is no form, or has too many fields.
    """
    parser = email.parser.BytesHeaderParser(policy=email.policy.HTTP)
    head = parser.parsebytes(b"Content-Type: " + content_type.encode("ascii", "replace") + b"\r\n\r\n")
    boundary = head.get_boundary()
    if not boundary:
        raise InvalidMessage("form: has no boundary")
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("ascii", "replace"))
    if len(pieces) < 3 or not pieces[-1].startswith(b"--") or len(pieces) > MAX_FIELDS + 2:
        raise InvalidMessage(f"form: breaks off, or has more than {MAX_FIELDS} fields")
    fields: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        header, blank, content = piece.partition(b"\r\n\r\n")
        name = parser.parsebytes(header.strip() + b"\r\n\r\n").get_param("name", header="content-disposition")
        if not blank or not isinstance(name, str):
            raise InvalidMessage("form: a field has no name")
        fields[name] = content
    return fields
