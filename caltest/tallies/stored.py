"""The stored form of a tally: JSON of whole numbers only, checked when it is read.

:func:`tally_json` writes the fields of a tally, and :func:`fields_of` reads them and refuses sums
that no rows can have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._base import IntArray
from caltest._base.saving import sealed, unsealed
from caltest._base.written import Fields
from caltest.data.lenses import Canonical, Lens, OneVsRest, Partition, TopK
from caltest.errors import InvalidPredictionsError
from caltest.tallies.grid import CELL_SUMS, FINE, POSITIONS, ROWS_A_TALLY, TOTALS, Grid

#: The lenses through which a tally may look, by name.
TALLY_LENSES: dict[str, type[Lens]] = {
    kind.__name__: kind for kind in (OneVsRest, TopK, Partition, Canonical)
}


#: The version of the stored form.
VERSION = 2


#: What the stored form says it is.
FORM = "caltest tally"


def tally_json(tally: Fields, n: int) -> str:
    """Return the fields of a tally of ``n`` rows as JSON text; :func:`fields_of` is the inverse."""
    lens = {"name": type(tally["lens"]).__name__, **vars(tally["lens"])}
    columns = {"stratum": tally["stratum"], "key": tally["key"]}
    columns |= dict(zip(CELL_SUMS, tally["sums"].T, strict=True))
    content = {
        FORM: VERSION, "lens": lens, "grid": tally["grid"], "n": n,
        "n_classes": tally["n_classes"], "classes": tally["classes"],
        "weights": tally["strata"].tolist(), "totals": tally["totals"].tolist(),
        "notes": tally["notes"],
        "cells": {name: column.tolist() for name, column in columns.items()},
    }  # fmt: skip
    return sealed(content)


def fields_of(content: Any) -> Fields:
    """Return the fields of a tally from parsed JSON.

    InvalidPredictionsError for content that is no tally, and for sums that no rows can have.
    """
    try:
        cells = content["cells"]
        if content[FORM] != VERSION:
            raise InvalidPredictionsError(
                f"this tally has the form {content[FORM]}, known is {VERSION}"
            )
        named, classes = dict(content["lens"]), content["classes"]
        whole = {name: _whole_column(name, cells[name]) for name in ("stratum", "key", *CELL_SUMS)}
        totals = np.asarray(content["totals"])
        if totals.dtype != np.int64:
            raise InvalidPredictionsError("this tally is damaged: totals are not whole numbers")
        fields: Fields = {
            "lens": TALLY_LENSES[named.pop("name")](**named),
            "grid": content["grid"],
            "n_classes": content["n_classes"],
            "classes": None if classes is None else tuple(classes),
            "strata": np.asarray(content["weights"], dtype=np.float64),
            "key": whole.pop("key"),
            "stratum": whole.pop("stratum"),
            "sums": np.column_stack([*whole.values()]),
            "totals": totals,
            "notes": tuple(content["notes"]),
        }
        _refuse_impossible(fields, content["n"])
    except InvalidPredictionsError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise InvalidPredictionsError(f"this is not a tally of caltest: {lacks}") from None
    unsealed(content, "this tally")
    return fields


def _whole_column(name: str, values: object) -> IntArray:
    """Return a column of whole numbers below 2⁶³, (C,).

    InvalidPredictionsError names a bad value.
    """
    if not isinstance(values, list):
        raise InvalidPredictionsError(f"this tally is damaged: {name} is no list")
    for row, value in enumerate(values):
        if type(value) is not int or abs(value) >= 2**63:
            raise InvalidPredictionsError(
                f"this tally is damaged: {name} of cell {row} is {value!r}, not a whole number"
            )
    return np.array(values, dtype=np.int64)


def _refuse_impossible(fields: Fields, n: object) -> None:
    """Raise InvalidPredictionsError for cells or sums that no rows can have, naming the field.

    ``n`` is the stated number of rows.
    """
    key, stratum, strata = fields["key"], fields["stratum"], fields["strata"]
    last, size = Grid(fields["grid"]).last, strata.size
    order = stratum * (last + 1) + key
    inside = (key >= 0) & (key <= last) & (stratum >= 0) & (stratum < size)
    rows, t1, t2, t3, t4, events, events_t, rest = fields["sums"].T.astype(np.float64)
    most = rows * POSITIONS * (1 + 1e-9)  # positions are rounded
    checks = {
        "n is below 1": rows < 1,
        "events are below 0": events < 0,
        "events are above n": events > rows,
        "t1 is not of n positions in [-1, 1]": np.abs(t1) > most,
        "t2 is not of n squares in [0, 1]": (t2 < 0) | (t2 > most),
        "t3 is not of n positions in [-1, 1]": np.abs(t3) > most,
        "t4 is not of n squares in [0, 1]": (t4 < 0) | (t4 > most),
        "events_t is not of that many events": np.abs(events_t) > events * POSITIONS * (1 + 1e-9),
        "t1_rest is not of n remainders": np.abs(rest) > rows * (FINE / POSITIONS),
        "the cell is not one of the grid": ~inside,
        "the cell is not after the one before": np.diff(order, prepend=-1) <= 0,
    }
    for words, wrong in checks.items():
        if wrong.any():
            cell = int(np.argmax(wrong))
            raise InvalidPredictionsError(f"this tally is damaged: in cell {cell} {words}")
    found, classes = int(fields["sums"][:, 0].sum()), fields["classes"]
    wrong_weights = not (np.isfinite(strata) & (strata > 0)).all() or (np.diff(strata) <= 0).any()
    for words, is_wrong in {
        f"its sums do not fit its number, {n!r}": type(n) is not int or found != n,
        f"it has more than {ROWS_A_TALLY} rows": rows.sum() > ROWS_A_TALLY,
        "its weights are not finite, above 0 and increasing": not strata.size or wrong_weights,
        "its totals do not fit its weights": fields["totals"].shape != (size, len(TOTALS), 2),
        f"its number of classes is {fields['n_classes']!r}": (
            type(fields["n_classes"]) is not int or fields["n_classes"] < 2
        ),
        "its classes do not fit their number": (
            classes is not None and len(set(classes)) != fields["n_classes"]
        ),
    }.items():
        if is_wrong:
            raise InvalidPredictionsError(f"this tally is damaged: {words}")
