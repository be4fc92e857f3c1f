"""Guesses of the columns of a table of counts: of rows, of events, and their probability.

:func:`likely_grades` is the entry. A guess never chooses: readings are printed for the user to
judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.errors import Reading
from caltest.read.expressions import Term, has_commas, key, of_commas, quoted
from caltest.read.guesses import BASIS

if TYPE_CHECKING:
    import polars as pl

#: Names that are read without an option, in lower case with ``_`` for signs.
GRADE_NAMES = {
    "n": frozenset("n count rows total obligors borrowers accounts customers loans".split()),  # noqa: SIM905
    "events": frozenset("events defaults defaulted bads".split()),  # noqa: SIM905
    "probability": frozenset("pd probability p prob predicted_probability risk".split()),  # noqa: SIM905
    "names": frozenset("grade rating bin bucket band name".split()),  # noqa: SIM905
}

#: Columns that a table of grades must have.
REQUIRED = ("n", "events", "probability")

#: Likely readings that are listed; of more, places are.
LISTED_READINGS = 6

#: A month, such as 01.2024, in text.
MONTH = r"^(?:0[1-9]|1[0-2])\.\d{4}$"

#: Distance within which a column of fractions is the observed frequency, rounded.
SAME_RATE = 0.0051


def likely_grades(
    frame: pl.DataFrame, found: Mapping[str, Term], missing: Sequence[str]
) -> list[Reading]:
    """Return readings of columns that may be the roles ``missing`` from a table of grades.

    Each sets the missing roles n, events and probability to columns. Counts are whole numbers,
    events at most n, and probabilities fractions. ``frame`` has the rows, and ``found`` the
    expressions of the roles known already. The list is empty if nothing fits.
    """
    used = {root for term in found.values() for root in term.roots}
    numbers = {n: v for n in frame.columns if (v := _as_floats(frame[n])) is not None}
    free = [n for n in numbers if n not in used]
    whole = [n for n in free if (numbers[n] % 1 == 0).all() and not _counts_on(numbers[n])]
    whole = [n for n in whole if not {*key(n).split("_")} & BASIS]
    inside = [n for n in free if numbers[n].min() >= 0 and numbers[n].max() <= 100]
    basis = [n for n in free if {*key(n).split("_")} & BASIS and numbers[n].max() <= 1e4]
    fractions = basis or [n for n in inside if (numbers[n] % 1 != 0).any()]
    gaps = any(frame[n].null_count() for n in frame.columns if n not in used)
    options = {"n": whole, "events": whole, "probability": fractions}
    columns = [
        options[w] if w in missing else [(found[w].column or "")]
        for w in REQUIRED
    ]  # fmt: skip
    readings = []
    for n, events, p in product(*columns):
        fits = n != events and not ({n, events} - numbers.keys())
        if fits and (numbers[events] <= numbers[n]).all() and (numbers[n] > 0).any():
            rates = numbers[events] / np.maximum(numbers[n], 1.0)
            readings.append((n, events, p, _is_rate(numbers.get(p), rates)))
    if gaps or any(not rate for *_, rate in readings):
        # What was observed is not what was predicted, which may lack a value in a row of totals.
        readings = [r for r in readings if not r[3]]
    if (
        tuple(missing) == REQUIRED
    ):  # of several columns those that have about as many events as predicted
        near = [r for r in readings if _as_many(numbers, r[:3], 1e4 if r[2] in basis else 100.0)]
        readings = near or readings
    if not 0 < len(readings) <= LISTED_READINGS:
        return [Reading(dict.fromkeys(missing, "COLUMN"))]
    several_fit = len(readings) > 1
    made = []
    for n, events, p, _ in readings:
        name = dict(zip(REQUIRED, (n, events, p), strict=True))
        given = {w: quoted(name[w]) for w in missing}
        signed = str(frame[p].dtype) == "String"  # divided by 100 where it is read
        if "probability" in missing and signed and has_commas(frame[p]):
            given["probability"] = of_commas(quoted(p), frame[p])
        elif "probability" in missing and p in basis:
            given["probability"] += " / 10000"
        elif "probability" in missing and numbers[p].max() > 1.0 and not signed:
            given["probability"] += " / 100"
        what = " and ".join(f"{w} is {name[w]}" for w in missing)
        made.append(Reading(given, what if several_fit else ""))
    return made


def _as_many(numbers: Mapping[str, FloatArray], names: tuple[str, str, str], scale: float) -> bool:
    """Return whether Σ events is within a factor of two of Σ n p.

    ``names`` are the columns n, events and p, whose cells are in ``numbers``; ``scale`` divides p
    where it is above 1.
    """
    n, events, p = (numbers[name] for name in names)
    expected = float(n @ p) / (scale if p.max() > 1.0 else 1.0)
    return 0.5 * expected <= float(events.sum()) <= 2.0 * expected


def _as_floats(cells: pl.Series) -> FloatArray | None:
    """Return a column as numbers (n,), percent signs removed; None for others and with gaps."""
    import polars as pl

    if cells.dtype == pl.String:
        words = cells.str.strip_chars().str.strip_chars_end("% ")
        if words.str.contains(MONTH).all():
            return None
        words = words.str.replace(",", ".", literal=True) if has_commas(words) else words
        cells = words.cast(pl.Float64, strict=False)
    if not cells.dtype.is_numeric() or cells.null_count() or not cells.len():
        return None
    values = np.asarray(cells.cast(pl.Float64).to_numpy())
    return values if np.isfinite(values).all() else None


def _counts_on(numbers: FloatArray) -> bool:
    """Return whether numbers look like row numbers (1, 2, 3, …) or years, not like counts."""
    years = ((numbers >= 1900) & (numbers <= 2100)).all()
    return bool((numbers.size > 1 and (np.diff(numbers) == 1).all()) or years)


def _is_rate(values: FloatArray | None, rates: FloatArray) -> bool:
    """Return whether a column ``values`` (G,) equals the observed event ``rates`` (G,).

    It may hold fractions or percentages. False if ``values`` is None, a column without numbers.
    """
    if values is None:
        return False
    gaps = [np.abs(values - rates).max(), np.abs(values - 100.0 * rates).max()]
    return bool(gaps[0] <= SAME_RATE or gaps[1] <= 10.0 * SAME_RATE)
