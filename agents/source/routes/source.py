"""Source files as far as a call graph needs them, the same for every language.

What code uses is a chain: ``self.store.load(x).total`` is ``("self", "store", "load", "()", "total")``. The
first part is a name in scope, and ``()`` stands for what a call returns. A computed first part is ``""``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Chain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function with what it uses; nested functions are functions of their own.

    Args:
        name: As stack frames spell it.
        qualified: The same without its module: ``Basket.total``.
        owner: Qualified name of the class whose method it is; empty for none.
        line: Of its definition, from 1.
        end: Its last line.
        uses: Chains that occur in it, also without a call: a function may be handed on.
        variables: Local name or parameter → the chain that it was bound to, or its type.
        returns: The chain whose value it returns, or its type; empty where that is not known.
    """

    name: str
    qualified: str
    owner: str
    line: int
    end: int
    uses: tuple[Chain, ...] = ()
    variables: Mapping[str, Chain] = field(default_factory=dict)
    returns: Chain = ()


@dataclass(frozen=True, slots=True)
class Class:
    """A class: the chains of its bases, and of what its fields hold."""

    name: str
    qualified: str
    line: int
    bases: tuple[Chain, ...] = ()
    fields: Mapping[str, Chain] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()  # names that its body itself binds
    uses: tuple[Chain, ...] = ()  # in its body


@dataclass(frozen=True, slots=True)
class Unit:
    """One source file.

    Args:
        path: In the repository.
        module: By which others import it, and as stack frames spell it.
        language: ``Python``, ``Java`` or ``JavaScript``.
        imports: Local name → module and perhaps a name in it, joined by dots (or ``#`` in JavaScript).
        functions: Qualified name → function.
        classes: Qualified name → class.
        variables: Name of the module → the chain that it was bound to; empty where that is not known.
        exports: Of JavaScript: name → chain; ``=`` is all that a module exports at once.
    """

    path: str
    module: str
    language: str
    imports: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    classes: Mapping[str, Class] = field(default_factory=dict)
    variables: Mapping[str, Chain] = field(default_factory=dict)
    exports: Mapping[str, Chain] = field(default_factory=dict)
