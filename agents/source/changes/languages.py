r"""Languages besides Python by their file names, and how their stack frames spell a subroutine.

What a sampler prints for a subroutine: C its name; C++ ``ns::Class::method``; Java, Kotlin and Scala
``com.acme.A$Inner.method`` (with slashes in the package, as async-profiler prints it); Go
``path/of/package.(*Type).Method``; Rust ``krate::module::Type::method``; JavaScript ``Class.method``; C#
``Acme.Shop.Class.Method``; PHP ``Acme\Shop\Class::method``; Ruby ``Shop::Class#method``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from agents.source.syntax import Definition


@dataclass(frozen=True, slots=True)
class Language:
    """A language that is recognised by file names."""

    name: str
    suffixes: tuple[str, ...]
    grammar: str  # in ``agents.source.syntax``
    spell: Callable[[Definition, str], tuple[str, ...]]  # with the module or package, perhaps ""
    manifest: str = ""  # the file, in a folder above, that names the module


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name, None for Python and all that is not known."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def _spell_c(definition: Definition, module: str) -> tuple[str, ...]:
    return ("::".join([*definition.scope, definition.name]),)


def _spell_java(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope
    name = "<init>" if scope and definition.name == scope[-1] else definition.name
    dotted = ".".join(part for part in (module, "$".join(scope), name) if part)
    slashed = ".".join(part for part in ("/".join([*module.split("."), "$".join(scope)]), name) if part)
    return (dotted, slashed) if module else (dotted,)


def _spell_go(definition: Definition, module: str) -> tuple[str, ...]:
    receiver = definition.receiver
    middle = f".({receiver})" if receiver.startswith("*") else f".{receiver}" if receiver else ""
    return (f"{module or 'main'}{middle}.{definition.name}",)


def _spell_rust(definition: Definition, module: str) -> tuple[str, ...]:
    return ("::".join(part for part in (module, *definition.scope, definition.name) if part),)


def _spell_js(definition: Definition, module: str) -> tuple[str, ...]:
    return (".".join([*definition.scope, definition.name]),)


def _spell_kotlin(definition: Definition, module: str) -> tuple[str, ...]:
    package, _, file = module.rpartition(".")  # functions outside classes are methods of the file's class
    return _spell_java(replace(definition, scope=definition.scope or (file,)), package)


def _spell_scala(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope  # the methods of a class, and those of an object
    spelt = [
        replace(definition, scope=(*scope[:-1], f"{last}{end}")) for last in scope[-1:] for end in ("", "$")
    ]
    return tuple(name for class_ in spelt or [definition] for name in _spell_java(class_, module))


def _spell_csharp(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope
    name = ".ctor" if scope and definition.name == scope[-1] else definition.name
    return (".".join(part for part in (module, *scope, name) if part),)


def _spell_php(definition: Definition, module: str) -> tuple[str, ...]:
    owner = "\\".join(part for part in (module, "\\".join(definition.scope)) if part)
    return (f"{owner}{'::' if definition.scope else chr(92)}{definition.name}" if owner else definition.name,)


def _spell_ruby(definition: Definition, module: str) -> tuple[str, ...]:
    owner = "::".join(definition.scope)
    return (f"{owner}#{definition.name}", f"{owner}.{definition.name}") if owner else (definition.name,)


_C_SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".c++", ".cu", ".ipp", ".inl")

LANGUAGES = (
    Language("C and C++", _C_SUFFIXES, "C++", _spell_c),
    Language("Java", (".java",), "Java", _spell_java),
    Language("Go", (".go",), "Go", _spell_go, "go.mod"),
    Language("Rust", (".rs",), "Rust", _spell_rust, "Cargo.toml"),
    Language("JavaScript", (".js", ".mjs", ".cjs", ".jsx"), "JavaScript", _spell_js),
    Language("TypeScript", (".ts", ".mts", ".cts"), "TypeScript", _spell_js),
    Language("TypeScript with JSX", (".tsx",), "TSX", _spell_js),
    Language("PHP", (".php",), "PHP", _spell_php),
    Language("Kotlin", (".kt", ".kts"), "Kotlin", _spell_kotlin),
    Language("Scala", (".scala",), "Scala", _spell_scala),
    Language("C#", (".cs",), "C#", _spell_csharp),
    Language("Ruby", (".rb",), "Ruby", _spell_ruby),
)

_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}

# Shell and SQL are not among them: no sampler names their functions.
_UNREAD_SUFFIXES = frozenset(
    (
        *(".pyx", ".pxd", ".pxi", ".swift", ".m", ".mm", ".dart", ".lua", ".pl", ".pm", ".r", ".jl"),
        *(".erl", ".hs", ".ml", ".fs", ".vb", ".clj", ".groovy", ".zig", ".nim", ".d", ".cr", ".f90"),
        *(".ex", ".exs", ".vue", ".svelte", ".phtml", ".pas", ".lisp", ".el", ".tcl", ".asm", ".s"),
    )
)

INTERPRETED = re.compile(rb"#!.*?(?:python|ruby|perl|php|node|lua|Rscript)")
"""First line of a script without a suffix whose functions a sampler sees."""


def may_be_unread_code(path: str) -> bool | None:
    """Return whether a file holds code that is not read, by its name; None where its first line decides."""
    suffix = PurePosixPath(path).suffix.lower()
    return None if not suffix else suffix in _UNREAD_SUFFIXES
