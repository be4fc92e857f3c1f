"""Columns that are likely the counts and probabilities of a table of grades; only suggested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.errors import Reading
from caltest.read.expressions import Term, quoted

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


#: Distance within which a column of fractions is the observed frequency, rounded.
SAME_RATE = 0.0051


def likely_grades(
    frame: pl.DataFrame, found: Mapping[str, Term], missing: Sequence[str]
) -> list[Reading]:
    """Return readings of columns that may be meant: counts, no more events than n, fractions."""
    used = {root for term in found.values() for root in term.roots}
    numbers = {n: v for n in frame.columns if (v := _as_floats(frame[n])) is not None}
    free = [n for n in numbers if n not in used]
    whole = [n for n in free if (numbers[n] % 1 == 0).all() and not _counts_on(numbers[n])]
    inside = [n for n in free if numbers[n].min() >= 0 and numbers[n].max() <= 100]
    fractions = [n for n in inside if (numbers[n] % 1 != 0).any()]
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
    if any(not rate for *_, rate in readings):  # what was observed is not what was predicted
        readings = [r for r in readings if not r[3]]
    if not 0 < len(readings) <= LISTED_READINGS:
        return [Reading(dict.fromkeys(missing, "COLUMN"))]
    several_fit = len(readings) > 1
    made = []
    for n, events, p, _ in readings:
        name = dict(zip(REQUIRED, (n, events, p), strict=True))
        given = {w: quoted(name[w]) for w in missing}
        signed = str(frame[p].dtype) == "String"  # divided by 100 where it is read
        if "probability" in missing and numbers[p].max() > 1.0 and not signed:
            given["probability"] += " / 100"
        what = " and ".join(f"{w} is {name[w]}" for w in missing)
        made.append(Reading(given, what if several_fit else ""))
    return made


def _as_floats(cells: pl.Series) -> FloatArray | None:
    """Return a column as numbers, with percent signs left out; None for others and for gaps."""
    import polars as pl

    if cells.dtype == pl.String:
        cells = cells.str.strip_chars().str.strip_chars_end("% ").cast(pl.Float64, strict=False)
    if not cells.dtype.is_numeric() or cells.null_count() or not cells.len():
        return None
    values = np.asarray(cells.cast(pl.Float64).to_numpy())
    return values if np.isfinite(values).all() else None


def _counts_on(numbers: FloatArray) -> bool:
    """Say whether numbers are those of rows, or years."""
    years = ((numbers >= 1900) & (numbers <= 2100)).all()
    return bool((numbers.size > 1 and (np.diff(numbers) == 1).all()) or years)


def _is_rate(values: FloatArray | None, rates: FloatArray) -> bool:
    """Say whether a column is the observed frequency, as a fraction or in percent."""
    if values is None:
        return False
    gaps = [np.abs(values - rates).max(), np.abs(values - 100.0 * rates).max()]
    return bool(gaps[0] <= SAME_RATE or gaps[1] <= 10.0 * SAME_RATE)
