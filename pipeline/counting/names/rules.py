"""Rules of names by language: what compilers and runtimes add to a name and make anew, and what is left.

Every rule is a pure function of a name, shortens what it changes, and belongs to a language; ``hints`` are
texts of which one must be in a name before the rule is tried at all. A rule whose hints are in many plain
names gives a narrower ``sign`` too: names without any sign are not looked at further. The rules run in their
order until nothing changes. Sources of the spellings: what GCC, Clang, javac, HotSpot, rustc, gc, V8, Roslyn,
PHP and the samplers async-profiler, perf, py-spy, rbspy and phpspy print.

To add a rule, add a row to one of the modules below and rows to the truth table in
``tests/unit/counting/names/test_rules.py``, and raise VERSION. A new version may only take more away: what a
former version left must give the same symbol as the name itself (``tests/unit/counting/names/former.json``),
since the series that are stored have only that.
"""

from __future__ import annotations

from pipeline.counting.names.jvm import JVM
from pipeline.counting.names.managed import MANAGED
from pipeline.counting.names.mangled import MANGLED
from pipeline.counting.names.native import NATIVE
from pipeline.counting.names.rule import NameRule
from pipeline.counting.names.system import SYSTEM

VERSION = 6
"""Version of the rules."""

RULES: tuple[NameRule, ...] = (*SYSTEM, *MANGLED, *JVM, *MANAGED, *NATIVE)
"""All rules, in the order in which they are tried: arguments last, as others know them by their signs."""
