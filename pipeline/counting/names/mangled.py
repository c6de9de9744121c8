"""Rules for names as linkers have them: mangled by C++ and Rust, with what a dynamic linker adds."""

from __future__ import annotations

import re

from demangle import Limits, demangle, style

from pipeline.counting.names.rule import NameRule, cut

_SIGN = r"^_{1,4}Z|^_R|^\?"
_LANGUAGES = ("itanium", "rust", "msvc")
"""Manglings of GCC, Clang and rustc, and of Microsoft's compiler."""

_LIMITS = Limits(max_depth=100, max_output=16_384, max_substitutions=2_048, max_input=4_096)
"""A few hundred characters can stand for a name larger than memory; what is beyond stays mangled."""

_STYLE = style("llvm")
"""As an object: the library keeps what is asked for by a style's name, and a naming keeps its own."""

_COPY = re.compile(r"^((?:_{1,4}Z|_R)\w+)(?:\.\d+)+$")
"""A number after a dot, by which compilers keep local copies apart: another one in the next build."""


_SIGNED = re.compile(_SIGN)

_LIBRARIES = r"(?:GLIBC(?:XX)?|CXXABI|GCC|GOMP|LLVM|OPENSSL|ZLIB|LIB[A-Z]\w*|FBSD)_(?:\d[\d._]*|PRIVATE)"
"""Versions of libraries after one sign @, which stands in other names, too; after two stands any version."""


def _demangled(name: str) -> str:
    """Return a mangled name as its source has it, any other as it is; bounded, and never raises."""
    if not _SIGNED.search(name):
        return name
    return demangle(_COPY.sub(r"\1", name), language=_LANGUAGES, style=_STYLE, limits=_LIMITS)


MANGLED: tuple[NameRule, ...] = (
    NameRule(
        "linked",
        "C, C++, Rust",
        # versions of a library's symbols and stubs that lead to them: memcpy@@GLIBC_2.14, memcpy@plt
        ("@",),
        cut((rf"(?<=[\w)>\]])@(?:plt|@[A-Z][A-Z0-9_]*_(?:\d[\d.]*|PRIVATE)|{_LIBRARIES})$", "")),
        sign=r"@plt$|@[A-Z][A-Z0-9_]*_(?:\d[\d.]*|PRIVATE)$",
    ),
    NameRule(
        "mangled",
        "C++, Rust",
        # mangling: _ZN4shop4Cart3addEv, _RNvNtC4shop4cart3add, ?add@Cart@shop@@QEAAXXZ
        ("_Z", "_R", "?"),
        _demangled,
        sign=_SIGN,
    ),
)
