"""Write the table of what each test takes (docs/row_facts.md) from ``caltest.inference._input``.

``python scripts/row_facts.py`` writes the page, ``--check`` fails if it is out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from caltest.inference._input import TAKES, RowFact

PAGE = Path(__file__).parents[1] / "docs" / "row_facts.md"

#: The heads of the columns, in the order of the table.
HEADS = {
    RowFact.WEIGHTS: "`weights`",
    RowFact.CLUSTERS: "`clusters`",
    RowFact.CROSSED: "two columns of `clusters`",
    RowFact.SUBGROUPS: "`by`",
    RowFact.FOLDS: "`folds`",
    RowFact.HORIZON: "`horizon`, `time`",
    RowFact.FEATURES: "`features`",
    RowFact.FOLLOWUP: "`Followup`",
    RowFact.LABEL_SETS: "several labels a row",
}

TEXT = """# Which test takes weights, clusters, subgroups, folds, follow-up

Every test takes predictions, labels and `ids`, by which the rows of two models are matched. The
table says which design information it takes besides, and whether a {{py:class}}`~caltest.Tally` may
stand in place of the rows. A fact that a test does not take is refused by its name: nothing is
ignored. {{doc}}`concepts/designs` defines each of them.

{table}

`interval` is `caltest interval --statistic slope` (or `intercept`, `O:E`) on the command line.
Monitors take the time of each row as `time=` of `update`.
"""


def page() -> str:
    """Return the page as Markdown."""
    rows = [["test", *HEADS.values(), "tally"]]
    for verb, takes in TAKES.items():
        marks = ["yes" if fact in takes.facts else "–" for fact in HEADS]
        rows.append([f"`{verb}`", *marks, takes.tally.value])
    rows.insert(1, ["---"] * len(rows[0]))
    return TEXT.format(table="\n".join(f"| {' | '.join(row)} |" for row in rows))


def main() -> int:
    """Write or check the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.name} is out of date: run python scripts/row_facts.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
