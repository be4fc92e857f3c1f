"""The same test in every subgroup, and one p-value for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from caltest._base.multiplicity import holm, max_t
from caltest._base.progress import progress
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.results import CalibrationTestResult, Subgroups
from caltest.simulate import BLOCK, Batches, RedrawLabels, simulate_by
from caltest.statistics.prepared import Prepared, StatisticLike, prepare


def each_subgroup(
    data: Predictions,
    induced: Predictions,
    statistic: StatisticLike,
    test: Callable[[Predictions], CalibrationTestResult],
    run: tuple[int, Any, Any],
) -> Subgroups:
    """Test every subgroup; ``run`` is the number of resamples, the generator and the workers.

    Where rows are in two subgroups, labels are drawn once for all of them, unless clusters make
    the tests draw their own.
    """
    groups = data.subgroups()
    plain = replace(data, by=None)
    tests = []
    with progress(len(groups), "subgroups") as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        for name, rows in groups.items():
            try:
                tests.append(test(plain.take(rows)))
            except StatisticError as error:
                raise StatisticError(f"subgroup {name}: {error}") from None
            advance(1)
    membership = np.bincount(np.concatenate(list(groups.values())), minlength=data.n)
    together = membership.max() > 1 and data.n_clusters is None
    if together:
        parts = [(prepare(statistic, induced.take(rows)), rows) for rows in groups.values()]
        batches = Batches.of(RedrawLabels(), induced, partial(_in_groups, parts))
        values, _ = simulate_by(batches, *run, at_once=BLOCK)
        both = np.array([prepared.two_sided for prepared, _ in parts])
        observed = np.array([t.estimate for t in tests])
        sides = [np.where(both, np.abs(v), v) for v in (observed, values)]
        adjusted = max_t(sides[0], sides[1])
    else:
        adjusted = holm([t.pvalue for t in tests])
    how = "max-T" if together else "Holm"
    return Subgroups(tuple(groups), tuple(tests), tuple(adjusted), min(adjusted), how)


def _in_groups(parts: list[tuple[Prepared, IntArray]], labels: IntArray) -> FloatArray:
    return np.column_stack([prepared.batch(labels[:, rows]) for prepared, rows in parts])
