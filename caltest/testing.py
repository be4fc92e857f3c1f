"""Calibration as a test: :func:`assert_calibrated`, as a function or as a fixture of pytest.

pytest finds the fixture of the same name by itself (:mod:`caltest.pytest_plugin`). Nothing here
needs pytest.
"""

from __future__ import annotations

from typing import Any

from caltest._base.arrays import RNG, ProbsOrData, Values
from caltest.reports import gate
from caltest.results import GateResult, GateVerdict
from caltest.statistics import ECE, StatisticLike


def assert_calibrated(
    probs: ProbsOrData, labels: Values = None, statistic: StatisticLike = ECE(), *, rng: RNG = 0,
    **options: Any,
) -> GateResult:  # fmt: skip
    """Fail unless the error is shown to be within a tolerance, or no worse than another model's.

    Arguments as in :func:`caltest.gate`: ``tolerance``, ``against``, ``margin``…; ``rng`` is the
    same in every run, so that a test does not change its mind. AssertionError, whose message is the
    report, when a check has failed, or the rows are too few to tell.

    Examples
    --------
    >>> import caltest as ct
    >>> model = ct.examples.GaussianMixture(0.0, -2.0).sample(5000, rng=1)
    >>> assert_calibrated(model, tolerance=0.05).verdict
    'passed'
    """
    __tracebackhide__ = True
    result = gate(probs, labels, statistic, rng=rng, **options)
    if result.verdict is not GateVerdict.PASSED:
        raise AssertionError(f"the calibration gate says {result.verdict!r}\n\n{result}")
    return result
