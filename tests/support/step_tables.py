"""The page docs/steps.md, the tables of judging steps, generated from the registry.

``python -m tests.support.step_tables`` rewrites it (``make schemas``).
"""

from __future__ import annotations

from pipeline.model.steps import STEPS, Step
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "steps.md"
INTRODUCTION = """# Steps

<!-- from pipeline/model/steps.py: make schemas -->

Each step asks one question of every candidate. The [ledger](tables.md#ledger) has its answer as a code, with
a value and the bound that the value was compared with.
"""


def step_page() -> str:
    """Return the page: each step with its question and numbers, and codes with numbers of their own."""
    steps = [step for step in STEPS if step.drops or step.optional]
    lines = [INTRODUCTION, "| step | asks | value, against the bound | codes |", "| --- | --- | --- | --- |"]
    for step in steps:
        codes = ", ".join(f"`{code}`" for code in step.codes)
        key = f"`{step.key}` (optional)" if step.optional else f"`{step.key}`"
        lines.append(f"| {key} | {step.question} | {_measures(step)} | {codes} |")
    special: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        for code, answer in step.codes.items():
            if answer.measures:
                special.setdefault((code, answer.measures), []).append(f"`{step.key}`")
    lines += ["", "| code | of | value, where it is another |", "| --- | --- | --- |"]
    lines += [
        f"| `{code}` | {', '.join(owners)} | {measures} |" for (code, measures), owners in special.items()
    ]
    parts = [step.key for step in STEPS if step.ablatable and not step.drops]
    lines += [
        "",
        "Parts that drop nothing by themselves (`smidgen bench accuracy --without NAME` leaves them out):",
    ]
    lines += [", ".join(f"`{key}`" for key in parts) + "."]
    return "\n".join(lines) + "\n"


def _measures(step: Step) -> str:
    passed = f"; of one that passed: {step.measures_passed}" if step.measures_passed else ""
    return f"{step.measures or '–'}{passed}"


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(step_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
