"""What a picture shows: data seen through a lens, part by part, and the tests that go with it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from caltest._base.written import name_of
from caltest.errors import DegenerateDataWarning
from caltest.inference import calibration_test
from caltest.inference.analysis import Analysis
from caltest.lenses import Canonical, Lens, OneVsRest
from caltest.predictions import IntArray, Predictions
from caltest.problem import Problem
from caltest.results import CalibrationTestResult
from caltest.results.reliability import SPREAD_EDGES
from caltest.statistics import StatisticLike


class View(Analysis):
    """An analysis that a picture shows part by part."""

    @property
    def event(self) -> str:
        """What the first class of the induced problem is called."""
        return self.lens.components(self.data)[0]

    @property
    def groups(self) -> dict[str, Any]:
        """The induced problem of every subgroup, by its name; of all rows, "", without ``by``."""
        if self.from_sums:
            return {"": self.problem}
        plain = replace(self.problem, by=None)
        return {n: plain.take(rows) for n, rows in self.problem.subgroups().items()} or {"": plain}

    def test(
        self, statistic: StatisticLike, part: Predictions, options: dict[str, Any]
    ) -> CalibrationTestResult:
        """Test what is shown; a statistic that can show one value only is no news there."""
        lens: Lens = Canonical()
        if self.from_sums:
            part, lens = self.problem.tally, self.problem.tally.lens
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(part, None, statistic, lens=lens, **options)
        return replace(test, lens=name_of(self.lens), n_classes=self.data.n_classes)


def two_class_problems(induced: Predictions) -> list[Predictions]:
    """Return the event of an induced problem, or each class in turn."""
    if induced.n_classes == 2:
        return [induced]
    return [OneVsRest(j)(induced) for j in range(induced.n_classes)]


def spread(problem: Problem) -> IntArray:
    """Return the histogram of the predictions of an event, over ``SPREAD_EDGES``."""
    counts, _ = np.histogram(problem.probs[:, 0], SPREAD_EDGES, weights=problem.count)
    return counts.astype(np.int64)
