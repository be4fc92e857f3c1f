"""Type-I error of tests from tallies, on the calibrated data of ``validation.type_one_error``.

``python -m validation.tallies`` writes ``docs/tallies.md``; ``--quick`` is a small version that
prints. Either fails when a test rejects calibrated models more often than chance allows.
"""

from __future__ import annotations

import warnings

import numpy as np

import caltest as ct
from validation.pages import largest_rate, letter, opening, table, usual_largest
from validation.study import Study, run
from validation.tally import BINNED, DRAWN
from validation.type_one_error import LEVELS, SCENARIOS, B

KINDS = [s for s in SCENARIOS if s.copies == 1]
TESTS = {f"`{s!r}`".replace(", distance='tv'", ""): s for s in (*BINNED, *DRAWN)}


def tests(_):
    return TESTS


def measure(scenario, wanted, rng):
    """Return at which levels the tests reject the event of two classes, or the top one of more."""
    data, seed = scenario(rng), int(rng.integers(2**63))
    tally = ct.Tally.of(data, lens=ct.OneVsRest(1) if data.n_classes == 2 else ct.TopK(1))
    answers = {}
    for name in wanted:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = ct.calibration_test(tally, None, TESTS[name], n_resamples=B, rng=seed).pvalue
        except ct.StatisticError:
            p = 1.0
        answers[name] = [p <= level + 1e-12 for level in LEVELS]
    return answers


def page(found):
    """Return the page, and the cells in which calibrated models were rejected too often."""
    shown = [s for s in KINDS if s.key in found.shown]
    data = [(letter(i), s.name, s.n, found.sets(s.key)) for i, s in enumerate(shown)]
    lines, broken = table(["", "data", "n", "data sets"], data, left=2), []
    rates = {(t, s.key): found.means(s.key, t) for t in TESTS for s in shown}
    for column, level in enumerate(LEVELS):
        rows = []
        for name in TESTS:
            row = [name]
            for scenario in shown:
                rate, sets = rates[name, scenario.key][column], found.trials(scenario.key, name)
                too_often = rate > largest_rate(level, sets, len(LEVELS) * len(rates))
                row.append(f"**{rate:.3f}**" if too_often else f"{rate:.3f}")
                broken += [f"{name}, {scenario.key}: {rate:.3f} at {level}"] * too_often
            rows.append(row)
        head = ["test", *(letter(i) for i in range(len(shown)))]
        lines += ["", f"## At level {level:g}", "", *table(head, rows)]
    at_5 = [means[1] for means in rates.values()]
    words = {
        "mean": np.mean(at_5),
        "worst": max(at_5),
        "count": len(at_5),
        "usual": usual_largest(0.05, min(found.sets(s.key) for s in shown), len(at_5)),
        "b": B,
    }
    return HEADER.format(**words, **opening(found)) + "\n".join([*lines, ""]), broken


HEADER = """# Type-I error of tests from tallies

The tests of {{doc}}`validity` that a {{doc}}`tally <scale>` can answer, from its sums alone: of
the event of two classes, of the top class of more. At 0.05 they reject calibrated models in
{mean:.3f} of data sets on average over {count} cells, and in {worst:.3f} in the worst, where chance
alone makes the worst of so many {usual:.3f}. A rate in bold is larger than chance allows (one false
alarm in a thousand such studies). Binned errors but for the debiased have exact nulls, all others
{b} draws. Data sets are drawn as in {{doc}}`validity`, whose worst cell is this one: with ten
rows `Kuiper()` rejects 0.044 of 4000 others.

{made}

"""

STUDY = Study("tallies", {s.key: s for s in KINDS}, tests, measure, page, quick=8)
if __name__ == "__main__":
    run(STUDY)
