"""Rules for names of languages that compile to machine code: C++, Go, Rust, Swift and others."""

from __future__ import annotations

import re

from pipeline.counting.names.brackets import outline
from pipeline.counting.names.rule import NameRule, cut

_GO_PACKAGES = (
    "bufio|bytes|cmp|context|errors|expvar|flag|fmt|io|iter|log|maps|net|os|plugin|reflect|regexp|runtime|slices"
    "|sort|strconv|strings|sync|syscall|testing|time|unicode|unique|unsafe|weak|main"
)
"""Packages of Go without a slash in their path, by which its names differ from Python's."""

_GO_CLOSURE = re.compile(
    r"^(.+?)\.?(?:\.func\d+(?:\.[\w.()*\[\]]*+)?+|\.(?:gowrap|deferwrap)\d+(?:\.\d+)*|-fm|-range\d+|·dwrap·\d+)++$"
)
"""The first closure of a name; after it, functions may follow that Go has inlined into it.

Without its possessive quantifiers, a name of many closures that ends otherwise would take exponential time.
"""

_GO_ONLY = re.compile(
    rf"/|\(\*|\[|^(?:{_GO_PACKAGES})\.|\.(?:gowrap|deferwrap)\d|\.func\d+\.(?:func)?\d|-fm$|-range\d+$|·dwrap·|^glob\."
)


_GO_ABI = re.compile(r"\.abi(?:0|internal)$")


def _without_go_abi(name: str) -> str:
    return _GO_ABI.sub("", name) if _GO_ONLY.search(name) else name


def _without_go_closure(name: str) -> str:
    found = _GO_CLOSURE.match(name)
    # Functions and methods are called func1, too; Go's closures stand in a function of a package.
    if not found or not _GO_ONLY.search(name) or found[1].endswith(")"):
        return name
    return found[1] if "." in found[1].rpartition("/")[2] else name


_GO_SHAPE = "[go.shape."


def _without_go_types(name: str) -> str:
    """Return a name with dots for the types of generic functions, which may hold brackets themselves."""
    start = name.find(_GO_SHAPE)
    while start >= 0:
        depth, end = 1, start + 1
        while depth and end < len(name):
            depth += {"[": 1, "]": -1}.get(name[end], 0)
            end += 1
        if depth or (name[end:] and name[end] not in ".)"):
            return name
        name = f"{name[:start]}[...]{name[end:]}"
        start = name.find(_GO_SHAPE)
    return name


_RUST_ESCAPES = {
    "$LT$": "<",
    "$GT$": ">",
    "$LP$": "(",
    "$RP$": ")",
    "$RF$": "&",
    "$BP$": "*",
    "$C$": ",",
    "$u20$": " ",
    "$u22$": '"',
    "$u27$": "'",
    "$u2b$": "+",
    "$u3b$": ";",
    "$u5b$": "[",
    "$u5d$": "]",
    "$u7b$": "{",
    "$u7d$": "}",
    "$u7e$": "~",
}
_RUST_PARTS = (
    "constant|inline_const"
    "|(?:closure|async_fn|async_block|async_closure|coroutine|coroutine_closure|gen_fn|gen_block)(?:_env)?"
)
"""What rustc calls code inside of a function."""

_RUST_ESCAPE = re.compile("|".join(map(re.escape, _RUST_ESCAPES)))


def _with_rust_signs(name: str) -> str:
    plain = _RUST_ESCAPE.sub(lambda found: _RUST_ESCAPES[found[0]], name)
    if plain == name:
        return name
    plain = plain.replace("`_<", "`<")
    return re.sub(r"(?<=[\w>\]])\.\.(?=[\w<])", "::", plain).removeprefix("_" if plain[1:2] == "<" else "")


_SWIFT_BARE = re.compile(r"(?<=\w) -> (?:\(\)|\[[\w.]+\])$")
"""A result behind a name whose arguments are gone already."""

_SWIFT_RESULT = re.compile(r"(?<=\))(?: async| (?:re)?throws(?:\([^()]*\))?)*(?: -> .*)?$")


def _without_swift_result(name: str) -> str:
    """Return a name of Swift without its result and effects, which follow its arguments."""
    name = _SWIFT_BARE.sub("", name)
    if name.startswith(("closure #", "implicit closure #", "protocol witness ", "reabstraction thunk ")):
        return name
    depth = 0
    for index, character in enumerate(name):
        if character in "(<[":
            depth += 1
        elif character in ")]" or (character == ">" and name[index - 1] != "-"):
            depth -= 1
            if (
                depth == 0
                and character == ")"
                and name.startswith((" async", " throws", " rethrows", " -> "), index + 1)
            ):
                result = _SWIFT_RESULT.match(name, index + 1)
                return name[: index + 1] if result and "::" not in name[:index] else name
    return name


_COPIES = (
    "constprop|isra|part|__part|cold|lto_priv|llvm|ipa_sra|sra|simdclone|resolver|localalias|specialized"
    r"|extracted|_?omp_fn|_omp_cpyfn|warm|unlikely|default|arch_\w+|avx\w*|sse\w*"
)
"""What GCC and LLVM call copies and parts of a function, before their numbers."""

_STAMPS = (
    re.compile(r"^(Precompiled_\w+?)_\d{3,}(?:_anonymous_closure_\d{3,})*$"),
    re.compile(r"^((?:julia|jfptr|japi1|jlsys|jlplt|gfptr)_(?:(?!\.clone_).)+)_\d+(?:\.clone_\d+)?$"),
    re.compile(r"^(caml[A-Z]\w*?(?:__|\.)\w+)_\d+(?:_code)?$"),
)
_LIBRARY_KEY = re.compile(r"(?:(?<=\W)|^)(_[A-Za-z]\w*)@\d{5,}(?=\W|_|$)")


def _without_stamp(name: str) -> str:
    """Return a name without the number that its compiler ends it with.

    What looks stamped without it keeps the underscore, or the next pass would take ``sha_256`` for ``sha``.
    """
    name = _LIBRARY_KEY.sub(r"\1", name)
    for stamp in _STAMPS:
        if match := stamp.match(name):
            return f"{match[1]}_" if stamp.match(match[1]) else match[1]
    return name


NATIVE: tuple[NameRule, ...] = (
    NameRule(
        "clone",
        "C, C++",
        # the numbers of a compiler's copies and parts: .constprop.0, .isra.0, .part.1, .cold, .llvm.123
        (".", "[clone"),
        cut(
            (r"(?<=.) \[clone \.[^\[\]]+\]", ""),
            (rf"(?<=.) \(\.(?:{_COPIES})(?:[.\d]\w*)*\)$", ""),
            (rf"(?<=.)(?:\.(?:{_COPIES})\.\d+)+(?:\.cold|\.localalias)?$", ""),
            (r"((?:::|\)|^_Z)[^.]*|^[A-Za-z_]\w*)\.(?:cold|localalias)$", r"\1"),
            (r"(?<=\w)\.(omp_outlined|omp_outlined_debug__)\.*\d+$", r".\1"),
            (r"(::\w[^\s.]*::[A-Za-z_]\w*)\.\d+$", r"\1"),
        ),
        sign=r"\[clone| \(\.|\.\d|\.(?:cold|localalias)$|\.omp_outlined",
    ),
    NameRule(
        "generated-function",
        "C, C++, Fortran, Python",
        # the number of code that LLVM moves out or a debugger finds without a name, the file's number of
        # OpenMP's kernels, and the number of a function that Numba compiles
        ("OUTLINED_FUNCTION_", "_unnamed_symbol", "__omp_offloading_", "$"),
        cut(
            (r"^(OUTLINED_FUNCTION)_\d+(?:_\d+)?$", r"\1"),
            (r"^(_*lldb_unnamed_symbol)_?\d+", r"\1"),
            (r"^(__omp_offloading)_[0-9a-f]+_[0-9a-f]+_(\w+?)_l\d+(?:_\d+)?$", r"\1_\2"),
            (r"(?<=\w)\$\d+(?:\.\d+)?(?=\[abi:v\d)", ""),
            (r"^(cpython::[^\s$]+)\$\d+(?:\.\d+)?(?=\(|$)", r"\1"),
        ),
        sign=r"^OUTLINED_FUNCTION_\d|_unnamed_symbol_?\d|^__omp_offloading_[0-9a-f]|\$[\d.]+\[abi|^cpython::.*\$",
    ),
    NameRule(
        "local-lambda",
        "C++",
        # the number of Clang's and Microsoft's lambdas
        ("::$_", "<lambda"),
        cut(
            (r"::\$_\d+(?:::(?:operator\(\)|__invoke)(?:<[^()]*>)?)?(?=\W|$)", ""),
            (r"<lambda_[0-9a-f]{32}>", "<lambda>"),
            (r"<lambda_\d+>", "<lambda>"),
        ),
    ),
    NameRule(
        "go-closure",
        "Go",
        # closures and wrappers, which belong to the function around them: .func1.2, .gowrap1, -fm
        (".func", ".gowrap", ".deferwrap", "-fm", "-range", "·dwrap·"),
        _without_go_closure,
        sign=r"\.(?:func|gowrap|deferwrap)\d|-fm$|-range\d|·dwrap·\d",
    ),
    NameRule(
        "go-abi",
        "Go",
        # the calling convention of assembly, which Go's own profiles leave out
        (".abi0", ".abiinternal"),
        _without_go_abi,
        sign=r"\.abi(?:0|internal)$",
    ),
    NameRule(
        "cgo-hash",
        "Go",
        # the hash of a package's C code, and of a plugin
        ("_cgo", "plugin/unnamed-"),
        cut(
            (r"^(_cgo(?:exp)?)_[0-9a-f]{12}_(?=\w)", r"\1_"),
            (r"^(plugin/unnamed)-[0-9a-f]{16,64}(?=\.)", r"\1"),
        ),
        sign=r"^_cgo(?:exp)?_[0-9a-f]{12}_|^plugin/unnamed-",
    ),
    NameRule(
        "go-shape",
        "Go",
        # the types of a generic function, which Go itself shortens to [...]
        (_GO_SHAPE,),
        _without_go_types,
    ),
    NameRule(
        "rust-escape",
        "Rust",
        # the escapes of half demangled names: $LT$, $u20$
        ("$",),
        _with_rust_signs,
        sign=r"\$(?:[LG]T|[LR]P|RF|BP|C|u\w\w)\$",
    ),
    NameRule(
        "rust-hash",
        "Rust",
        # the hash of a build
        ("::h", "17h", "["),
        cut(
            (r"(?<=.)::h[0-9a-f]{16}(?![0-9a-zA-Z_])", ""),
            (r"^(_ZN.+)17h[0-9a-f]{16}E(?=$|\.)", r"\1E"),
            (r"(?<=\w)\[[0-9a-f]{8,16}\](?=::)", ""),
        ),
        sign=r"::h[0-9a-f]{16}|17h[0-9a-f]{16}|\[[0-9a-f]{8}",
    ),
    NameRule(
        "rust-closure",
        "Rust",
        # closures, which belong to the function around them
        ("{",),
        cut(
            (rf"(?<=.)::_?\{{\{{(?:impl|{_RUST_PARTS})\}}\}}", ""),
            (rf"(?<=.)::\{{(?:{_RUST_PARTS})#\d+\}}", ""),
            (r"(?<=.)(?:::)?\{\{vtable\.shim\}\}|(?<=.)(?:::)?\{shim:vtable#\d+\}", ""),
        ),
    ),
    NameRule(
        "swift-entry",
        "Swift",
        # parts, specialisations and thunks of a function, and the hash of a private one's file
        (" for ", " of ", "merged ", "specialized ", " in _"),
        cut(
            (r"^\(\d+\) (?:suspend|await) resume partial function for (?=\S)", ""),
            (r"^(?:[a-z-]+ )*specialization <.*> of (?=\S)", ""),
            (r"^(?:merged|specialized|partial apply(?: forwarder)? for) (?=\S)", ""),
            (r"\((\w+) in _[0-9A-F]{32}\)", r"\1"),
            (r"^protocol witness for ([^\s()<]+).* in conformance ([^\s<]+).*$", r"\1/\2"),
        ),
        sign=r"partial function for |specialization <|^merged |^specialized |^partial apply|^protocol witness"
        r"|[0-9A-F]{32}\)",
    ),
    NameRule(
        "swift-closure",
        "Swift",
        # closures, which belong to the function around them
        ("closure #",),
        cut((r"^(?:(?:implicit )?closure #\d+ (?:.*? )??in )+(?=\S)", "")),
    ),
    NameRule(
        "swift-result",
        "Swift",
        # the result of a function, whose spaces are no return type of C++: load() async throws -> Int
        (") async", ") throws", ") rethrows", " -> "),
        _without_swift_result,
        sign=r"\) (?:async|(?:re)?throws|->)|\w -> (?:\(\)|\[[\w.]+\])$",
    ),
    NameRule(
        "stamp",
        "Julia, OCaml, Dart",
        # the number that a compiler ends a name with, or a private name's library
        ("julia_", "jfptr_", "japi1_", "jlsys_", "jlplt_", "gfptr_", "caml", "Precompiled_", "@"),
        _without_stamp,
    ),
    NameRule(
        "arguments",
        "C++, Rust, Java, .NET",
        # arguments, type parameters, return types, ABI tags and lambdas
        ("<", "(", "{lambda", "'lambda", "[abi:"),
        outline,
    ),
)
