"""Forms of generic subroutines: Go's frames have brackets where its sources have types."""

from __future__ import annotations

import re

_RECEIVER = re.compile(r"(\(\*\w+)\)\.(?=\w+$)")
_VALUE = re.compile(r"(?<=\.)([A-Z]\w*)\.(?=\w+$)")


def forms_of(name: str) -> tuple[str, ...]:
    """Return the symbols that a subroutine of a source may have in stacks, its own first.

    ``main.Map`` may be ``main.Map[...]``, and ``main.(*Cart).Add`` may be ``main.(*Cart[...]).Add``. Most
    of them stand in no stack.
    """
    forms = [name]
    if "." in name and "::" not in name and not name.endswith("]"):
        forms.append(f"{name}[...]")
        forms += [
            form
            for form in (_RECEIVER.sub(r"\1[...]).", name), _VALUE.sub(r"\1[...].", name))
            if form != name
        ]
    return tuple(dict.fromkeys(forms))
