"""Symbols: the stable names under which frames are counted, whatever a compiler or a runtime calls them.

A frame as a sampler prints it may carry template arguments, closure numbers, hashes and addresses that a new
process or build makes anew. ``Naming`` turns it into a symbol, which series, stacks, changes, gates and cost
domains have in common; ``rules`` lists by language what is taken away.
"""

from pipeline.counting.names.brackets import outline
from pipeline.counting.names.generics import forms_of
from pipeline.counting.names.naming import Naming, Namings, Pattern, check_pattern, rules_without
from pipeline.counting.names.owners import method_of, owner_of
from pipeline.counting.names.present import PresentNames
from pipeline.counting.names.rule import Rule
from pipeline.counting.names.rules import RULES, VERSION

__all__ = [
    "RULES",
    "VERSION",
    "Naming",
    "Namings",
    "Pattern",
    "PresentNames",
    "Rule",
    "check_pattern",
    "forms_of",
    "method_of",
    "outline",
    "owner_of",
    "rules_without",
]
