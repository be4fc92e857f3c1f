"""The verb that tests several statistics and lenses on the same redrawn labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np

from caltest._base.defaults import N_RESAMPLES
from caltest._base.multiplicity import holm, max_t
from caltest.errors import StatisticError
from caltest.inference.analysis import (
    ROWS,
    Analysis,
    admitted,
    admitted_tally,
    rows_where_needed,
    seed_of,
    seen_through,
)
from caltest.inference.calibration import calibration_test, refuse_bets
from caltest.inference.pvalues import result_of
from caltest.inference.subgroups import with_subgroups
from caltest.lens_choice import as_lens
from caltest.lenses import Canonical, Lens, LensLike, Relabelling
from caltest.nulls import SimulatedNull
from caltest.predictions import Facts, FloatArray, IntArray, Predictions
from caltest.problem import Counts, Drawn, FollowupProblem, TallyProblem
from caltest.problem.followup import FollowupRedraws
from caltest.problem.tally import CountDraws
from caltest.results import JointTestResult, ending
from caltest.simulate import (
    BLOCK,
    Batches,
    Ended,
    RedrawLabels,
    SharedRedraws,
    Workers,
    simulate_by,
)
from caltest.statistics.base import Prepared, StatisticLike
from caltest.tally import AnyTally

#: What a joint result says of its data; lens and statistic are those of its tests.
OF_ALL_PAIRS = (
    *("n_classes", "seed", "notes", "copies", "effective_n", "n_clusters", "folds"),
    "followup",
)


def joint_test(
    probs: Any,
    labels: Any = None,
    *,
    pairs: Sequence[tuple[StatisticLike, LensLike | None]],
    n_resamples: int = N_RESAMPLES,
    rng: Any = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> JointTestResult:
    """Test several aspects of calibration on the same redrawn labels.

    Each pair of a statistic and a lens gets its own p-value, and one adjusted for their number by
    the step-down max-T of Westfall & Young (1993), sharper than Holm's where they are dependent.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    pairs : sequence of (statistic, lens)
        What is tested; a lens of None is the usual one.
    n_resamples : int, default 9999
        Label vectors drawn. No p-value is below 1 / (1 + ``n_resamples``).
    rng, workers, **facts
        As in :func:`calibration_test`.

    Raises
    ------
    StatisticError
        When there is no pair, a statistic is not a finite number, or a user's lens picks rows.

    Notes
    -----
    O(B n) for each pair. Labels are drawn from the whole vectors, or from what the one lens of all
    pairs shows; with one seed they are those of :func:`calibration_test`. With clusters pairs are
    tested by themselves and adjusted by Holm's method: dependence differs from lens to lens; so are
    several lenses of :class:`Tallies`, which do not know of each other. With ``by`` all pairs are
    tested in every subgroup, too, and these adjusted by Holm's method.

    References
    ----------
    Westfall & Young, "Resampling-based multiple testing", Wiley 1993.

    Examples
    --------
    >>> import caltest as ct
    >>> six = ct.examples.SixPoints().sample(600, rng=1)
    >>> pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(ct.UniformBins(10)), ct.Canonical())]
    >>> [p < 0.05 for p in ct.joint_test(six, pairs=pairs, n_resamples=999, rng=1).adjusted]
    [False, True]
    """
    statistics, lenses = _unzipped(pairs)
    options: Any = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    probs = rows_where_needed(probs, zip(statistics, lenses, strict=True))
    if isinstance(probs, AnyTally):
        tallies = admitted_tally("joint_test", probs, labels, facts, whole=True)
        tally, *others = [tallies.source(lens) for lens in lenses]
        if any(other.lens != tally.lens for other in others):
            return _holm(tallies, statistics, lenses, options)
        held = [tally.through(lens) for lens in lenses]
        own = [t.lens for t in held]
        return _of_tallies(tally, statistics, own, held, (n_resamples, rng, workers))
    data = admitted("joint_test", probs, labels, facts, takes=ROWS | {"by", "followup"})
    if data.by is not None:
        ask: Any = partial(joint_test, labels=None, pairs=pairs, **options)
        whole: JointTestResult = with_subgroups(ask, data)
        return whole
    for statistic in statistics:
        refuse_bets(data, statistic)
    if data.n_clusters is not None:  # dependence differs from lens to lens: no draws are shared
        return _holm(data, statistics, lenses, options | {"null": SharedRedraws()})
    looks = [as_lens(lens, data) for lens in lenses]
    if data.folds is not None and any(lens != looks[0] for lens in looks):  # so do aligned levels
        return _holm(data, statistics, lenses, options)
    if all(lens == looks[0] for lens in looks):
        sums = seen_through(data, looks[0], statistics)
        if isinstance(sums, TallyProblem):
            many = [sums.tally for _ in looks]
            return _of_tallies(data, statistics, looks, many, (n_resamples, rng, workers))
    seen = [lens(data) for lens in looks]
    analyses = [
        Analysis("joint_test", data, lens, shown, rng)
        for lens, shown in zip(looks, seen, strict=True)
    ]
    observed = [a.evaluate(s) for a, s in zip(analyses, statistics, strict=True)]
    if data.followup is not None:
        (first, _), *_ = observed
        assert isinstance(first.problem, FollowupProblem)
        both = FollowupRedraws(first.problem, partial(_of_draws, observed))
        run: Any = (n_resamples, rng, workers)
        drawn = simulate_by(both, *run)
        return _stepped(data.n, statistics, analyses, observed, drawn, "RedrawFollowup()")
    source, through = data, looks
    if all(lens == looks[0] for lens in looks):  # seen through one lens: draw what it shows
        source, through = seen[0], [Canonical() for _ in looks]
    parts = [
        (prepared, lens.relabelling(source))
        for (prepared, _), lens in zip(observed, through, strict=True)
    ]
    batches = Batches.of(RedrawLabels(), source, partial(_jointly, parts))
    drawn = simulate_by(batches, n_resamples, rng, workers, at_once=BLOCK)
    return _stepped(source.n, statistics, analyses, observed, drawn)


def _holm(
    data: Predictions | AnyTally, statistics: Any, lenses: Any, options: dict[str, Any]
) -> JointTestResult:
    """Test pairs by themselves, where no draws are shared, and adjust by Holm's method."""
    single = tuple(
        calibration_test(data, None, s, lens=lens, **options)
        for s, lens in zip(statistics, lenses, strict=True)
    )
    stepped = tuple(holm([test.pvalue for test in single]))
    size: Any = {"n": data.n, "n_classes": data.n_classes}
    size |= {"notes": data.notes, "copies": data.copies, "n_resamples": options["n_resamples"]}
    ended = ending(*(test.ended for test in single))
    said: Any = size | {"ended": ended, "seed": seed_of(options["rng"])}
    return JointTestResult(single, stepped, min(stepped), "Holm", **said)


def _of_tallies(
    data: Predictions | AnyTally, statistics: Any, looks: list[Lens], seen: list[Any], run: Any
) -> JointTestResult:
    """Draw numbers of events once for all statistics, of a tally and of its top class."""
    tally: Any = data if isinstance(data, AnyTally) else seen[0]
    own = TallyProblem.of(tally)
    top = next((t for t in seen if t is not tally), tally)
    folded = own if top is tally else TallyProblem.of(top)
    cells = [own if t is tally else folded for t in seen]
    analyses = [
        Analysis("joint_test", data, lens, c, run[1]) for lens, c in zip(looks, cells, strict=True)
    ]
    observed = [a.evaluate(s) for a, s in zip(analyses, statistics, strict=True)]
    fold = own.top_class_map(folded) if folded is not own else None

    def jointly(counts: Counts) -> FloatArray:
        turned: Any = counts.events if fold is None else fold(counts.events)
        both = zip(observed, cells, strict=True)
        return np.column_stack(
            [x.values(counts if c is own else Counts(turned)) for (x, _), c in both]
        )

    drawn = simulate_by(CountDraws(own, jointly), *run)
    return _stepped(tally.n, statistics, analyses, observed, drawn)


def _stepped(
    n: int,
    statistics: list[StatisticLike],
    analyses: list[Analysis],
    observed: list[tuple[Prepared, float]],
    drawn: tuple[FloatArray, Ended],
    null: str = "RedrawLabels()",
) -> JointTestResult:
    """Adjust by the joint law of the values (B, S)."""
    values, ended = drawn
    tests = tuple(
        result_of(a, prepared, s, null, t, SimulatedNull(column, ended))
        for a, s, (prepared, t), column in zip(
            analyses, statistics, observed, values.T.copy(), strict=True
        )
    )
    both, centre = np.array([(x.two_sided, x.centre) for x, _ in observed]).T
    estimates = np.array([t for _, t in observed])
    evidence = [np.where(both, np.abs(v - centre), v) for v in (estimates, values)]
    adjusted = tuple(max_t(evidence[0], evidence[1]))
    size: Any = {name: analyses[0].facts[name] for name in OF_ALL_PAIRS}
    size |= {"n": n, "n_resamples": len(values), "ended": ended}
    return JointTestResult(tests, adjusted, min(adjusted), **size)


def _unzipped(pairs: Any) -> tuple[list[StatisticLike], list[Lens | None]]:
    try:
        statistics, lenses = [s for s, _ in pairs], [lens for _, lens in pairs]
    except (TypeError, ValueError):
        raise StatisticError(
            f"pairs must be a list such as [(ECE(15), TopK(1)), (Kuiper(), None)], not {pairs!r}"
        ) from None
    if not statistics:
        raise StatisticError("the list of (statistic, lens) pairs is empty")
    return statistics, lenses


def _of_draws(observed: list[tuple[Prepared, float]], drawn: Drawn) -> FloatArray:
    return np.column_stack([prepared.values(drawn) for prepared, _ in observed])


def _jointly(parts: list[tuple[Prepared, Relabelling]], labels: IntArray) -> FloatArray:
    return np.column_stack([prepared.batch(relabelled(labels)) for prepared, relabelled in parts])
