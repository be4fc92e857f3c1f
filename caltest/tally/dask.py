"""Tallies of Dask data frames: one a partition, added up as in a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.io.assembly import Chosen, chosen_of, read_chosen
from caltest.io.opening import imported
from caltest.io.source import Source
from caltest.lenses import Lens
from caltest.tally.files import named_alike
from caltest.tally.tally import Tally


def of_frame(
    frame: Any,
    probs: Any,
    label: Any,
    lens: Lens | None,
    grid: int,
    weights: str | None,
    options: dict[str, Any],
) -> Tally:
    """Tally a frame where its partitions are; what columns mean is read off its first rows."""
    dask = imported("dask", "dask", "Dask data frames")
    head = _source(frame.head(1000, npartitions=-1))
    chosen = chosen_of(head, probs, label, {"weights": weights}, predicted=None, options=options)
    tally = dask.delayed(_of_part, pure=False)
    add = dask.delayed(_added, pure=False)
    waiting = [
        tally(part, chosen, lens, grid, options) for part in frame[chosen.wanted].to_delayed()
    ]
    while len(waiting) > 1:
        pairs = zip(waiting[::2], waiting[1::2], strict=False)
        waiting = [add(a, b) for a, b in pairs] + waiting[len(waiting) // 2 * 2 :]
    counted = dask.compute(waiting[0])[0]
    assert isinstance(counted, Tally)
    return counted


def _source(frame: Any) -> Source:
    names = [str(name) for name in frame.columns]
    return Source(names, lambda wanted: [np.asarray(frame[name]) for name in wanted])


def _of_part(
    frame: Any, chosen: Chosen, lens: Lens | None, grid: int, options: dict[str, Any]
) -> Tally | None:
    if len(frame) == 0:
        return None
    data, _ = read_chosen(_source(frame), chosen, predicted=None, drop=False, options=options)
    return Tally.of(named_alike(data, options), lens=lens, grid=grid)


def _added(a: Tally | None, b: Tally | None) -> Tally | None:
    return b if a is None else a if b is None else a + b
