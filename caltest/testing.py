"""Calibration as a test: :func:`assert_calibrated`, as a function or as a fixture of pytest.

pytest finds the fixture of the same name by itself: this module is its plug-in, by the entry point
``pytest11``. Nothing here needs pytest, and nothing heavy is imported before a test asks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import caltest as ct

if TYPE_CHECKING:
    from caltest._base.arrays import RNG, ProbsOrData, Values
    from caltest.results import GateResult
    from caltest.statistics import StatisticLike


def assert_calibrated(
    probs: ProbsOrData, labels: Values = None, statistic: StatisticLike | None = None, *,
    rng: RNG = 0, **options: Any,
) -> GateResult:  # fmt: skip
    """Fail unless the error is shown to be within a tolerance, or no worse than another model's.

    ``probs``, ``labels`` and ``options`` are as in :func:`caltest.gate`: ``tolerance``,
    ``against``, ``margin``…; ``statistic`` is ``ECE()`` by default. ``rng`` is the same in every
    run, so that a test does not change its mind. Return the result of the gate where it has passed.
    AssertionError, whose message is the report, when a check has failed, or the rows are too few to
    tell.

    Examples
    --------
    >>> import caltest as ct
    >>> model = ct.examples.GaussianMixture(0.0, -2.0).sample(5000, rng=1)
    >>> assert_calibrated(model, tolerance=0.05).verdict
    'passed'
    """
    __tracebackhide__ = True
    result = ct.gate(probs, labels, statistic or ct.ECE(), rng=rng, **options)
    if result.verdict is not ct.GateVerdict.PASSED:
        raise AssertionError(f"the calibration gate says {result.verdict!r}\n\n{result}")
    return result


def _assert_calibrated() -> Any:
    """Return the function :func:`caltest.testing.assert_calibrated`, as a fixture of pytest.

    A test that names the fixture ``assert_calibrated`` calls it with probabilities and labels; it
    fails unless predictions are calibrated to within a tolerance.
    """
    return assert_calibrated


if "pytest" in sys.modules:
    import pytest

    # Called, not used as a decorator: mypy --strict has no types of pytest where it is missing.
    _fixture = pytest.fixture(name="assert_calibrated", scope="session")(_assert_calibrated)
