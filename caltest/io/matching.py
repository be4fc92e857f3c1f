"""Rows of several files that are the same observations, in whichever order they are written."""

from __future__ import annotations

from collections import Counter

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.predictions import Predictions


def match_rows(data: dict[str, Predictions]) -> dict[str, Predictions]:
    """Bring predictions of the same rows into the order of the first, by their ids."""
    ids = {name: np.asarray(d.ids).astype(str).tolist() for name, d in data.items()}
    (first, wanted), *others = ids.items()
    for name, listed in ids.items():
        _refuse(name, "more than once", [i for i, count in Counter(listed).items() if count > 1])
    matched, allowed = {first: data[first]}, set(wanted)
    for name, listed in others:
        place = {i: row for row, i in enumerate(listed)}
        _refuse(name, f"that are not in {first}", [i for i in listed if i not in allowed])
        _refuse(first, f"that are not in {name}", [i for i in wanted if i not in place])
        rows = np.array([place[i] for i in wanted])
        matched[name] = data[name].take(rows)
        (unlike,) = np.nonzero(matched[name].labels != data[first].labels)
        _refuse(name, f"with another label than in {first}", [wanted[i] for i in unlike])
    return matched


def _refuse(name: str, what: str, ids: list[str]) -> None:
    if ids:
        shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise InvalidPredictionsError(f"{name} has ids {what} ({len(ids)} in all): {shown}")
