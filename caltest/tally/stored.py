"""Tallies as JSON, of whole numbers only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.written import Fields
from caltest.errors import InvalidPredictionsError
from caltest.lenses import Canonical, Lens, OneVsRest, Partition, TopK
from caltest.tally.grid import SUMS, TOTALS, Grid

if TYPE_CHECKING:
    from caltest.tally.tally import Tally

#: The lenses through which a tally may look, by name.
LENSES: dict[str, type[Lens]] = {
    kind.__name__: kind for kind in (OneVsRest, TopK, Partition, Canonical)
}
#: The version of the stored form.
VERSION = 1
#: What the stored form says it is.
FORM = "caltest tally"


def to_json(tally: Tally) -> str:
    """Return a tally as JSON."""
    lens = {"name": type(tally.lens).__name__, **vars(tally.lens)}
    columns = {"stratum": tally.stratum, "key": tally.key}
    columns |= dict(zip(SUMS, tally.sums.T, strict=True))
    content = {
        FORM: VERSION, "lens": lens, "grid": tally.grid, "n": tally.n,
        "n_classes": tally.n_classes, "classes": tally.classes, "weights": tally.strata.tolist(),
        "totals": tally.totals.tolist(), "notes": tally.notes,
        "cells": {name: column.tolist() for name, column in columns.items()},
    }  # fmt: skip
    return json.dumps(content)


def fields_of(text: str) -> Fields:
    """Return the fields of a tally that was written as JSON, and check that it is one."""
    try:
        content = json.loads(text)
        cells = content["cells"]
        if content[FORM] != VERSION:
            raise InvalidPredictionsError(
                f"this tally has the form {content[FORM]}, known is {VERSION}"
            )
        named, classes = dict(content["lens"]), content["classes"]
        whole = {n: np.asarray(cells[n], dtype=np.int64) for n in ("stratum", "key", *SUMS)}
        fields: Fields = {
            "lens": LENSES[named.pop("name")](**named),
            "grid": content["grid"],
            "n_classes": content["n_classes"],
            "classes": None if classes is None else tuple(classes),
            "strata": np.asarray(content["weights"], dtype=np.float64),
            "key": whole.pop("key"),
            "stratum": whole.pop("stratum"),
            "sums": np.column_stack([*whole.values()]),
            "totals": np.asarray(content["totals"], dtype=np.int64),
            "notes": tuple(content["notes"]),
        }
        key, stratum = fields["key"], fields["stratum"]
        last, size = Grid(fields["grid"]).last, fields["strata"].size
        order = stratum * (last + 1) + key
        inside = ((key >= 0) & (key <= last) & (stratum < size)).all()
        shape = fields["totals"].shape == (size, len(TOTALS), 2)
        fits = fields["sums"][:, 0].sum() == content["n"] and shape
    except InvalidPredictionsError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidPredictionsError(f"this is not a tally of caltest: {error}") from None
    if not (fits and inside and (np.diff(order, prepend=-1) > 0).all()):
        raise InvalidPredictionsError("this tally is damaged: its sums do not fit its number")
    return fields
