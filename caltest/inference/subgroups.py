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
from caltest.results.base import go_on
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
    the tests draw their own, or the lens picks rows.
    """
    groups = data.subgroups()
    plain = replace(data, by=None, notes=(), copies=0)
    tests = []
    with progress(len(groups), "subgroups") as advance:
        for name, rows in groups.items():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    tests.append(test(plain.take(rows)))
                except StatisticError as error:
                    raise StatisticError(f"subgroup {name}: {error}") from None
            go_on(tests[-1].ended)
            for doubt in said:
                if doubt.category is not DegenerateDataWarning:
                    warnings.warn(f"subgroup {name}: {doubt.message}", doubt.category, stacklevel=3)
            advance(1)
    membership = np.bincount(np.concatenate(list(groups.values())), minlength=data.n)
    together = membership.max() > 1 and data.n_clusters is None and induced.n == data.n
    if together:
        parts = [(prepare(statistic, induced.take(rows)), rows) for rows in groups.values()]
        batches = Batches.of(RedrawLabels(), induced, partial(_in_groups, parts))
        values, ended = simulate_by(batches, *run, at_once=BLOCK)
        go_on(ended)
        both, centre = np.array([(test.two_sided, test.centre) for test in tests]).T
        observed = np.array([t.estimate for t in tests])
        sides = [np.where(both, np.abs(v - centre), v) for v in (observed, values)]
        adjusted = max_t(sides[0], sides[1])
    else:
        adjusted = holm([t.pvalue for t in tests])
    how = "max-T" if together else "Holm"
    return Subgroups(tuple(groups), tuple(tests), tuple(adjusted), min(adjusted), how)


def _in_groups(parts: list[tuple[Prepared, IntArray]], labels: IntArray) -> FloatArray:
    return np.column_stack([prepared.batch(labels[:, rows]) for prepared, rows in parts])
