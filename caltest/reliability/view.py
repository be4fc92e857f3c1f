"""What a picture shows: data seen through a lens, part by part, and the tests that go with it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from caltest._base.written import name_of
from caltest.errors import DegenerateDataWarning
from caltest.inference import calibration_test
from caltest.inference.analysis import Analysis
from caltest.lenses import Canonical, OneVsRest
from caltest.predictions import IntArray, Predictions
from caltest.problem import MicroCells, Problem
from caltest.results import CalibrationTestResult
from caltest.results.reliability import SPREAD_EDGES
from caltest.simulate import Run
from caltest.statistics import StatisticLike


class View(Analysis):
    """An analysis that a picture shows part by part."""

    @property
    def event(self) -> str:
        """What the first class of the induced problem is called."""
        return self.components[0]

    @property
    def groups(self) -> dict[str, Predictions | Problem]:
        """The induced problem of every subgroup, by its name; of all rows, "", without ``by``."""
        if self.from_sums:
            return {"": self.problem}
        plain, groups = replace(self.induced, by=None), self.induced.subgroups()
        return {name: plain.take(rows) for name, rows in groups.items()} or {"": plain}

    def test(
        self, statistic: StatisticLike, part: Predictions | Problem, run: Run
    ) -> CalibrationTestResult:
        """Test what is shown; a statistic that can show one value only is no news there."""
        lens, data = (None, part.tally) if isinstance(part, MicroCells) else (Canonical(), part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(data, None, statistic, lens=lens, **run)
        return replace(test, lens=name_of(self.lens), n_classes=self.data.n_classes)


def two_class_problems(induced: Predictions | Problem) -> list[Predictions | Problem]:
    """Return the event of an induced problem, or each class in turn."""
    if not isinstance(induced, Predictions) or induced.n_classes == 2:
        return [induced]
    return [OneVsRest(j)(induced) for j in range(induced.n_classes)]


def spread(problem: Problem) -> IntArray:
    """Return the histogram of the predictions of an event, over ``SPREAD_EDGES``."""
    counts, _ = np.histogram(problem.probs[:, 0], SPREAD_EDGES, weights=problem.count)
    return counts.astype(np.int64)
