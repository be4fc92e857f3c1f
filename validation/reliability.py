"""The page of random calls and injected faults.

``python -m validation.reliability`` writes ``docs/reliability.md`` from the counts that
``validation.fuzz`` and ``validation.faults`` have kept. Calls that fell are made again first.
"""

from __future__ import annotations

import json
from collections import Counter

from validation import fuzz
from validation.pages import table
from validation.study import DOCS, MEASURED

TARGET = DOCS / "reliability.md"
ENDINGS = {
    "answered": "answered",
    "InvalidPredictionsError": "input refused",
    "DoubtfulInputError": "asked back",
    "StatisticError": "does not fit",
    "UnsupportedFactError": "fact refused",
}
KINDS = {
    "killed": "SIGKILL", "interrupted": "Ctrl-C", "memory": "MemoryError", "ENOSPC": "disk full",
    "EIO": "disk error", "clock": "clock back by an hour",
}  # fmt: skip

PAGE = """# How does caltest end when calls, disks or processes go wrong?

Every call ends in an answer or in an error that says what to do, and every file is the old one or
the new one. This page has the figures of the last run.

## Random calls

`python -m validation.fuzz` makes calls of {verbs} verbs on random data, from ordinary to hostile
(NaN, infinities, other shapes and types, weights over 18 decades, one row, one class, empty
subgroups). A call falls if it ends in another exception than `InvalidPredictionsError` or
`StatisticError`, gives a warning that is not one of caltest, changes global state or its arguments,
breaks a promise (a p-value outside (0, 1], limits in the wrong order, an answer that JSON does not
bring back), or answers otherwise when it is made again: same seed, two workers, lists or polars in
place of arrays, rows in another order.

{calls} calls were made in {minutes:.0f} CPU minutes, seed {seed}. {fell}

{counts}

Verbs of which no call was answered, so that nothing but refusals was looked at: {never}.

## Faults

`python -m validation.faults` injects a fault into a command, looks at what is left, and runs the
command again: the answer and the file have to be those of a run without a fault. Points of progress
are spread evenly over all calls of functions of caltest that the command makes. Operations on files
(open, write, flush to disk, mode, move) fail one after the other; a write fails after half of its
bytes.

{faults}

{wrong}

A kill may leave a lock or a temporary file whose name begins with `.`; neither stands in the way of
the next run.

## Inside other tools

The metrics of {{doc}}`adapters` are tested in torchmetrics, Lightning, scikit-learn, MLflow,
Inspect and lm-evaluation-harness, each with about 200 hostile batches: they return NaN with an
`UnmeasuredWarning`, and raise nothing.
"""


def main() -> None:
    """Write the page."""
    random_calls = json.loads((MEASURED / "fuzz.json").read_text(encoding="utf-8"))
    faults = json.loads((MEASURED / "faults.json").read_text(encoding="utf-8"))
    text = page(random_calls, faults)
    TARGET.write_text(text, encoding="utf-8")


def page(found: dict, faults: dict) -> str:  # type: ignore[type-arg]
    """Return the page as Markdown."""
    rows = [
        [f"`{verb}`" if " " not in verb else verb, sum(ended.values())]
        + [ended.get(name, 0) for name in ENDINGS]
        for verb, ended in sorted(found["verbs"].items())
    ]
    numbers = [int(number) for number in found["fell"]]
    still = [f"call {n}: {fell}" for n in numbers if (fell := fuzz.checked(n)[2])]
    fell = "None fell." if not numbers else (
        f"{len(numbers)} fell in the run, by faults of caltest or of the driver; made again now, "
        f"{len(still)} fall" + (": " + "; ".join(still) if still else ".")
    )  # fmt: skip
    counted: Counter[tuple[str, str]] = Counter()
    broken: Counter[tuple[str, str]] = Counter()
    for key, wrong in faults.items():
        subject, kind, _ = key.split(" ")
        counted[subject, kind] += 1
        broken[subject, kind] += bool(wrong)
    subjects = sorted({subject for subject, _ in counted})
    lines = [
        [words] + [f"{broken[s, kind]} of {counted[s, kind]}" for s in subjects]
        for kind, words in KINDS.items()
    ]
    wrongs = [f"- {key}: {wrong}" for key, wrong in faults.items() if wrong]
    return PAGE.format(
        verbs=len(rows), calls=f"{found['calls']:,}".replace(",", " "),
        minutes=found["minutes"], seed=found["seed"], fell=fell,
        counts="\n".join(table(["call", "calls", *ENDINGS.values()], rows)),
        never=", ".join(f"`{row[0]}`" for row in rows if not row[2]) or "none",
        faults="Faults that left something wrong:\n\n"
        + "\n".join(table(["fault", *subjects], lines)),
        wrong="\n".join(wrongs) if wrongs else "No fault left anything wrong.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
