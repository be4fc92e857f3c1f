"""Tests of grades, by enumeration of all outcomes of small portfolios.

``python -m validation.grades`` writes ``docs/grades.md``. It fails when a portfolio whose
probabilities are right gives a false finding with more than the chance that is promised, or when a
p-value differs from the sum of the probabilities of all outcomes.
"""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from math import comb
from pathlib import Path

import caltest as ct
from validation.pages import table

PAGE = Path(__file__).parents[1] / "docs" / "grades.md"
ALPHA = 0.05
#: Rows of the grades, and their probabilities in thousandths.
PORTFOLIOS = {
    "three grades": ((5, 8, 6), (50, 200, 400)),
    "a small and a rare grade": ((3, 12), (500, 30)),
    "two single rows": ((1, 1, 14), (1, 300, 120)),
    "five grades of few rows": ((4, 3, 4, 3, 4), (10, 30, 80, 200, 450)),
    "rare events only": ((30, 20), (2, 5)),
    "one grade with most rows": ((60, 2, 2), (20, 100, 300)),
}
ALTERNATIVES = ("greater", "less", "two-sided")


def law(n, p):
    """Return the probabilities of 0, …, n events, as fractions."""
    return [comb(n, d) * p**d * (1 - p) ** (n - d) for d in range(n + 1)]


def convolved(laws):
    """Return the law of the sum, as fractions."""
    total = [Fraction(1)]
    for one in laws:
        new = [Fraction(0)] * (len(total) + len(one) - 1)
        for (i, a), (j, b) in itertools.product(enumerate(total), enumerate(one)):
            new[i + j] += a * b
        total = new
    return total


def tails(masses):
    """Return P(D ≥ d) and P(D ≤ d) for every d, as fractions."""
    below = list(itertools.accumulate(masses))
    return [1 - b + m for b, m in zip(below, masses, strict=True)], below


def pvalue(both, d, alternative):
    greater, less = both[0][d], both[1][d]
    return {
        "greater": greater,
        "less": less,
        "two-sided": min(Fraction(1), 2 * min(greater, less)),
    }[alternative]


def enumerated(name, alternative, method):
    """Return the chance of any false finding, and the largest error of a p-value."""
    sizes, thousandths = PORTFOLIOS[name]
    chances = [Fraction(p, 1000) for p in thousandths]
    laws = [law(n, p) for n, p in zip(sizes, chances, strict=True)]
    twins = [tails(one) for one in laws] + [tails(convolved(laws))]
    wrong, worst = Fraction(0), 0.0
    for events in itertools.product(*(range(n + 1) for n in sizes)):
        chance = Fraction(1)
        for one, d in zip(laws, events, strict=True):
            chance *= one[d]
        rows = {"n": sizes, "events": events, "probability": [float(p) for p in chances]}
        found = ct.grade_tests(rows, alternative=alternative, method=method, alpha=ALPHA)
        wrong += chance * bool(found.rejected)
        for test, both, d in zip(
            [*found.grades, found.portfolio], twins, [*events, sum(events)], strict=True
        ):
            worst = max(worst, abs(test.exact_pvalue - float(pvalue(both, d, alternative))))
    return float(wrong), worst


def page():
    """Return the page, and the cells that broke their promise."""
    rows, broken, worst = [], [], 0.0
    for name, (sizes, thousandths) in PORTFOLIOS.items():
        grades = ", ".join(f"{n} at {p / 1000:g}" for n, p in zip(sizes, thousandths, strict=True))
        cells = []
        for method, alternative in itertools.product(("exact", "jeffreys"), ALTERNATIVES):
            chance, error = enumerated(name, alternative, method)
            worst = max(worst, error)
            promised = method == "exact"
            broken += [f"{name}, {alternative}: {chance:.4f}"] * (promised and chance > ALPHA)
            cells.append(f"**{chance:.4f}**" if chance > ALPHA else f"{chance:.4f}")
        rows.append([name, grades, *cells])
    broken += [f"p-values differ by {worst:.1e}"] * (worst > 1e-12)
    head = [f"{method}, {words}" for method in ("exact", "Jeffreys") for words in ALTERNATIVES]
    lines = table(["portfolio", "rows and probabilities of grades", *head], rows, left=2)
    return HEADER.format(worst=worst) + "\n".join(lines) + "\n", broken


HEADER = """# Tests of grades, by enumeration

What is the chance that {{func}}`~caltest.grade_tests` calls any grade or the portfolio wrong at
`alpha=0.05`, although all probabilities are right? All outcomes of six small portfolios are listed,
and the probabilities of those with a finding are added up as exact fractions: there is no sampling
error. The exact method promises at most 0.05. Jeffreys' method does not; larger chances are in
bold. The p-values of the exact method differ from sums of fractions by at most {worst:.1e}, for
every outcome, grade, portfolio and alternative.

`python -m validation.grades` writes this page.

"""


def main() -> None:
    text, broken = page()
    PAGE.write_text(text, encoding="utf-8")
    for cell in broken:
        print(f"promise broken: {cell}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
