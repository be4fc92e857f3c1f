"""Tallies as JSON, of whole numbers only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.lenses import Canonical, Lens, OneVsRest, Partition, TopK
from caltest.predictions import IntArray
from caltest.tally.grid import SUMS, TOTALS, Grid

#: The lenses through which a tally may look, by name.
LENSES: dict[str, type[Lens]] = {
    kind.__name__: kind for kind in (OneVsRest, TopK, Partition, Canonical)
}
#: The version of the stored form.
VERSION = 1
#: What the stored form says it is.
FORM = "caltest tally"


def described(tally: Any) -> dict[str, Any]:
    """Return all of a tally but its cells."""
    lens = {"name": type(tally.lens).__name__, **asdict(tally.lens)}
    return {
        FORM: VERSION, "lens": lens, "grid": tally.grid, "n": tally.n,
        "n_classes": tally.n_classes, "classes": tally.classes, "weights": tally.strata.tolist(),
        "totals": tally.totals.tolist(), "notes": tally.notes,
    }  # fmt: skip


def columns(tally: Any) -> dict[str, IntArray]:
    """Return the cells of a tally as columns."""
    sums = dict(zip(SUMS, tally.sums.T, strict=True))
    return {"stratum": tally.stratum, "key": tally.key, **sums}


def fields_of(content: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a tally, and check that it is one."""
    try:
        if content[FORM] != VERSION:
            raise InvalidPredictionsError(
                f"this tally has the form {content[FORM]}, known is {VERSION}"
            )
        named, classes = dict(content["lens"]), content["classes"]
        whole = {n: np.asarray(cells[n], dtype=np.int64) for n in ("stratum", "key", *SUMS)}
        made: dict[str, Any] = {
            "lens": LENSES[named.pop("name")](**named),
            "grid": content["grid"],
            "n_classes": content["n_classes"],
            "classes": None if classes is None else tuple(classes),
            "strata": np.asarray(content["weights"], dtype=np.float64),
            "key": whole["key"],
            "stratum": whole["stratum"],
            "sums": np.column_stack([whole[name] for name in SUMS]),
            "totals": np.asarray(content["totals"], dtype=np.int64),
            "notes": tuple(content["notes"]),
        }
        last, size = Grid(made["grid"]).last, made["strata"].size
        order = made["stratum"] * (last + 1) + made["key"]
        inside = ((made["key"] >= 0) & (made["key"] <= last) & (made["stratum"] < size)).all()
        fits = made["sums"][:, 0].sum() == content["n"] and made["totals"].shape == (
            size, len(TOTALS), 2
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, InvalidPredictionsError):
            raise
        raise InvalidPredictionsError(f"this is not a tally of caltest: {error}") from None
    if not (fits and inside and (np.diff(order, prepend=-1) > 0).all()):
        raise InvalidPredictionsError("this tally is damaged: its sums do not fit its number")
    return made


def from_json(text: str) -> dict[str, Any]:
    """Return the fields of a tally that was written as JSON."""
    try:
        content = json.loads(text)
        cells = content["cells"]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidPredictionsError(f"this is not a tally of caltest: {error}") from None
    return fields_of(content, cells)
