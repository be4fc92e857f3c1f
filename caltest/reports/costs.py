"""The parts of audits and reports in the user's units, where costs are given."""

from __future__ import annotations

from contextlib import suppress

from caltest.data.utilities import Threshold, UtilityLike
from caltest.errors import UnsupportedFactError
from caltest.inference import decision_curve, promise
from caltest.nulls import Run
from caltest.results import PromiseResult, Result
from caltest.tallies import RowsOrTally


def promised(
    data: RowsOrTally, utility: UtilityLike, level: float, draws: Run
) -> PromiseResult | None:
    """Return the promised and the realised utility of acting on the probabilities.

    None for rows with a design, such as weights or clusters, for which no interval is known.
    """
    with suppress(UnsupportedFactError):
        return promise(
            data.rows, None, utility, level=level, n_resamples=draws["n_resamples"],
            rng=draws["rng"],
        )  # fmt: skip
    return None


def results_of_costs(
    data: RowsOrTally, utility: UtilityLike, level: float, draws: Run
) -> list[Result]:
    """Return the results in the user's units that stand in a report with ``costs=``.

    The utility promised and gained comes first. For two classes the net benefit at all thresholds
    follows, with simultaneous limits and the lines of acting always and never, which is the picture
    of the part.

    Raises
    ------
    UnsupportedFactError
        For rows with weights, clusters or another design, whose names are in the message.
    """
    gained = promise(
        data.rows, None, utility, level=level, n_resamples=draws["n_resamples"], rng=draws["rng"]
    )
    if data.n_classes > 2:
        return [gained]
    thresholds = None if not isinstance(utility, Threshold) else around(utility.t)
    return [gained, decision_curve(data.rows, None, thresholds, level=level, rng=0)]


def around(t: float) -> list[float]:
    """Return the thresholds of a decision curve: 0.01, …, 0.99 and the decision threshold t."""
    return sorted({*(k / 100.0 for k in range(1, 100)), t})
