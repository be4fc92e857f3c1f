"""What makes no sense is refused in a sentence, and statistics print as they are written."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import STATISTICS

import caltest as ct

THIRDS, BOTH = np.full((30, 3), 1 / 3), np.arange(30) % 2


OF_AN_EVENT = [s for s in STATISTICS if s.two_classes and s.statistic != ct.VariationalError()]


@pytest.mark.parametrize("row", OF_AN_EVENT, ids=str)
def test_more_classes_are_refused(row):
    with pytest.raises(ct.StatisticError, match=r"for two classes, but there are 3|two-class lens"):
        row.statistic(THIRDS, BOTH)


@pytest.mark.parametrize(
    "text",
    [
        *("Kuiper()", "KolmogorovSmirnov(scaled=True)", "BrierScore()", "LogScore()"),
        *("SphericalScore()", "ScoreGap('brier')", "CORP('log')", "Sweep()", "Sweep(norm='l2')"),
        *("MultiScale()", "MultiScale(scales=[2, 8])", "EdgeBins([0.5], closed='left')"),
    ],
)
def test_printed_as_written(text):
    assert repr(eval(text, {name: getattr(ct, name) for name in ct.__all__})) == text
