"""The gate: is this model good enough to be released, and no worse than the one in use?

:func:`gate` passes if the error is at most a tolerance and exceeds the error of another model by at
most a margin; upper bounds decide, and too few rows give "cannot tell". A failure is in doubt where
the data contradict what its bound assumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Unpack

import numpy as np

from caltest._base.arrays import N_TOGETHER, RNG, fraction, number, one_of, opened
from caltest._base.written import DependenceDoubt, Doubt, FollowupDoubt, explained, name_of
from caltest.data import Facts, Predictions
from caltest.data.doubts import refuse_same_outcomes
from caltest.data.facts import by_appearance
from caltest.data.lenses import Lens, LensLike
from caltest.data.predictions import match_rows
from caltest.errors import Reading, StatisticError
from caltest.inference import confidence_interval
from caltest.inference._input import Analysis, evaluated, noted, paired_rows, take_rows_or_tally
from caltest.nulls import Run, Workers
from caltest.nulls.agreement import association
from caltest.read.arguments import has_labels, lent_labels, with_ids
from caltest.reports.audit import ErrorBounds
from caltest.reports.findings import of_other_label
from caltest.results import GateCheck, GateResult, GateVerdict
from caltest.results.base import go_on, size_note
from caltest.statistics import ECE, DebiasedL2, StatisticLike
from caltest.tallies import AnyTally, RowsOrTally

#: Verdicts by whether an error is within its limit.
VERDICTS = {False: GateVerdict.FAILED, None: GateVerdict.CANNOT_TELL, True: GateVerdict.PASSED}

#: The verdict on all checks is the first of these that one of them has.
WORST_FIRST = (
    *(GateVerdict.FAILED, GateVerdict.IN_DOUBT),
    *(GateVerdict.CANNOT_TELL, GateVerdict.PASSED),
)


@explained
def gate(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    against: object = None,
    tolerance: float | None = None,
    margin: float | None = None,
    lens: LensLike | None = None,
    paired: bool = True,
    alpha: float = 0.05,
    names: tuple[str, str] = ("new", "old"),
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> GateResult:
    """Say whether a model may be released: passed, failed, in doubt, or too few rows to tell.

    It passes if its error is at most ``tolerance``, and exceeds the error of another model on the
    same rows, ``against``, by at most ``margin``. A check passes when the upper bound is within the
    limit, fails when the lower bound is beyond it, and cannot tell otherwise; then it says how many
    rows could. A failure is in doubt where the data contradict what its bound assumes: rows seem to
    depend on each other, sizes of clusters seem to depend on outcomes, or outcomes may have been
    censored. A doubt never changes a pass.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`confidence_interval`; also tallies. Follow-up without ``against`` only.
    against : array_like of shape (n,) or (n, K), Predictions or Tally, optional
        Predictions of the model in use for the same rows.
    tolerance, margin : float, optional
        The largest acceptable error, and the largest acceptable increase of the root mean squared
        error over ``against``.
    statistic : Statistic, default ECE(UniformBins(15))
        The error that the tolerance limits, and the cells of both checks.
    paired : bool, default True
        Whether ``against`` predicts the rows of ``probs``; if not, both are :class:`Predictions`,
        or tallies.
    alpha : float, default 0.05
        Chance of a wrong finding, shared equally by the checks.
    names : tuple of str, default ("new", "old")
        Names of the models.

    Returns
    -------
    GateResult
        The verdict, and every check with its estimate, bounds and limit.

    Raises
    ------
    InvalidPredictionsError, StatisticError
        When rows do not match, nothing is to be checked, or no bound is known to hold.

    Notes
    -----
    With D = s − t the difference of the squared errors of :func:`compare`, and bounds of D and of t
    that together are wrong in a share of alpha, √(t + D) − √t is bounded by its smallest and
    largest value between them. O(n K) and some milliseconds.

    Examples
    --------
    >>> from caltest.data.examples import GaussianMixture
    >>> model = GaussianMixture(0.0, -2.0).sample(5000, rng=1)
    >>> answer = gate(model, tolerance=0.05, rng=1)
    >>> answer.verdict, answer.verdict.exit_code
    ('passed', 0)
    """
    fraction("alpha", alpha)
    one_of("paired", paired, (True, False))
    for name, limit in (("tolerance", tolerance), ("margin", margin)):
        if limit is not None:
            number(name, limit, 0.0, 1.0)
    data, old, both = _models(probs, labels, against, paired, lens, facts, names)
    if (margin is None) != (old is None):
        raise StatisticError(
            "a gate against another model needs both: against= and margin=0.01, "
            "how much larger than its error this one's may be",
            [Reading({"margin": "NUMBER"}) if margin is None else Reading({"against": "FILE"})],
        )
    limits = [limit for limit in (tolerance, margin) if limit is not None]
    if not limits:
        raise StatisticError(
            "say what may pass: tolerance=0.05, the largest error, or against= "
            "and margin=0.01, how much larger than another's",
            [Reading({"tolerance": "NUMBER"})],
        )
    if isinstance(data, Predictions) and (doubt := of_other_label(data)):
        data = replace(data, notes=(doubt.removesuffix("."), *data.notes))
    analysis = Analysis.through(lens, data, rng)
    through, share = analysis.lens, alpha / len(limits)
    draws = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    checks = []
    if tolerance is not None:
        bounds = ErrorBounds.of(data, (statistic, through), share, draws)
        checks.append(_check(f"error of {names[0]}", statistic, bounds, tolerance, data.n))
    if margin is not None:
        cells = evaluated(statistic, analysis.problem, analysis.data.n_classes)[0].cells
        squared = statistic if cells is None or cells.bins is None else DebiasedL2(cells.bins)
        bounds = _difference(both, old, paired, squared, through, share, names, draws)
        question = f"RMS error, {names[0]} − {names[1]}"
        checks.append(
            _check(question, squared, bounds, margin, data.n, "root mean squared error, √")
        )
    doubts: list[Doubt] = []
    if any(check.verdict is GateVerdict.FAILED for check in checks):
        doubts = _doubts([data] if old is None else [data, old], analysis)
    if doubts:
        failed = GateVerdict.FAILED
        checks = [
            replace(check, verdict=GateVerdict.IN_DOUBT) if check.verdict is failed else check
            for check in checks
        ]
    verdicts = [check.verdict for check in checks]
    result = analysis.result(
        GateResult,
        verdict=min(verdicts, key=WORST_FIRST.index),
        checks=tuple(checks),
        doubts=tuple(doubts),
        names=names if margin is not None else names[:1],
        alpha=float(alpha),
        n_resamples=n_resamples,
        notes=[]
        if old is None
        else [f"{names[1]}: {note}" for note in old.notes if note not in doubts],
    )
    return replace(result, notes=tuple(note for note in result.notes if note not in doubts))


def _check(
    question: str, statistic: StatisticLike, bounds: ErrorBounds, limit: float, n: int, of: str = ""
) -> GateCheck:
    verdict = VERDICTS[bounds.within(limit)]
    rows = bounds.rows_to_tell(n, limit) if verdict is GateVerdict.CANNOT_TELL else None
    numbers = (bounds.estimate, bounds.corrected, bounds.low, bounds.high)
    return GateCheck(question, of + name_of(statistic), *numbers, float(limit), verdict, rows)


def _doubts(models: Sequence[RowsOrTally], analysis: Analysis) -> list[Doubt]:
    """Return reasons to doubt the bounds of a failed check: assumptions that the data contradict.

    They are those of the notes of the ``models`` on dependent rows and follow-up, and clusters
    whose residuals change with their size, seen through the lens of the ``analysis``.
    """
    kinds = (DependenceDoubt, FollowupDoubt)
    found = [note for data in models for note in data.notes if isinstance(note, kinds)]
    if not analysis.from_sums and analysis.induced.clusters is not None:
        induced = analysis.induced
        columns = [induced.clusters, *([] if induced.crossed is None else [induced.crossed])]
        outcomes = {0, int(induced.probs.mean(axis=0).argmax())}
        weights = 1.0 if induced.weights is None else induced.weights
        effects = [
            association(np.bincount(cluster)[cluster], residuals, cluster)
            for column in columns
            for cluster in [by_appearance(column)]
            for c in outcomes
            for residuals in [weights * ((induced.labels == c) - induced.probs[:, c])]
        ]
        if note := size_note(max(effects, key=abs)):
            found.append(DependenceDoubt(note))
    return list(dict.fromkeys(found))


def _models(
    probs: object,
    labels: object,
    against: object,
    paired: bool,
    lens: LensLike | None,
    facts: Facts,
    names: tuple[str, str],
) -> tuple[RowsOrTally, RowsOrTally | None, tuple[RowsOrTally, RowsOrTally | None]]:
    """Validate both models; return (new, old, (new, old) as prepared for the comparison).

    Each is rows (Predictions) or a tally. ``probs``, ``labels``, ``lens`` and ``facts`` (design
    arguments by name) are as in :func:`gate`. ``against`` has the old model's predictions; without
    it ``old`` is None, twice. For paired models the prepared rows are matched by their ids.
    ``paired`` says that both predict the same rows, ``names`` are the models' names in messages.
    Raises as :func:`compare`.
    """
    if paired:
        probs, against = opened(probs, "probs"), opened(against, "against")
        facts = with_ids([probs, against], labels, facts)
    notes: Mapping[str, str] = {}
    if paired and against is not None and names[0] != names[1]:
        models = dict(zip(names, (probs, against), strict=True))
        matched, labels, notes = paired_rows(models, labels, {**facts})
        probs, against = (matched[name] for name in names)
    tallies = [each for each in (probs, against) if isinstance(each, AnyTally)]
    if against is not None and not tallies:  # rows of both models go together
        facts.setdefault("rounded", False)
    data = noted(take_rows_or_tally("gate", probs, labels, facts, lens), notes.get(names[0]))
    if against is None:
        return data, None, (data, None)
    complete = isinstance(against, (Predictions, AnyTally)) or not paired
    outcomes = labels
    if complete or has_labels(against):
        outcomes = labels if isinstance(labels, str) else None
    elif labels is None and isinstance(data, Predictions):
        outcomes = lent_labels(data, against, facts.get("ids"))
    old = take_rows_or_tally("gate", against, outcomes, facts, lens)
    old = noted(old, notes.get(names[1]))
    if paired and len(tallies) == 2:  # whose samples say which rows go together
        return data, old, (tallies[0], tallies[1])
    if paired and isinstance(data, Predictions) and isinstance(old, Predictions):
        data, old = match_rows(dict(zip(names, (data, old), strict=True))).values()
    if not paired and isinstance(data, Predictions) and isinstance(old, Predictions):
        refuse_same_outcomes(data.labels, old.labels, facts.get("as_is", False))
    return data, old, (data, old)


def _difference(
    both: tuple[RowsOrTally, RowsOrTally | None],
    old: RowsOrTally | None,
    paired: bool,
    statistic: StatisticLike,
    lens: Lens,
    share: float,
    names: tuple[str, str],
    draws: Run,
) -> ErrorBounds:
    """Return bounds of the increase of the root mean squared error, new − old.

    The ErrorBounds has the estimated increase with its lower and upper bound, wrong with
    probability ``share`` together, the part of alpha for this check. ``both`` are (new, old) as
    prepared for :func:`compare`, ``paired`` if they predict the same rows, ``old`` the old model
    for its own error. ``statistic`` and ``lens`` say which squared error is compared; ``names`` are
    the models' names in messages. ``draws`` holds n_resamples, rng and workers.
    """
    from caltest.inference import compare  # only gates with two models need it

    (new, in_use), level = both, 1.0 - share
    if not isinstance(new, AnyTally):  # rows have been questioned already
        facts: Facts = {"as_is": True}
    else:
        facts = {}
    comparison = compare(
        *(new, in_use, None, statistic), lens=lens, paired=paired, level=level, names=names,
        **facts, **draws,
    )  # fmt: skip
    go_on(comparison.ended)
    interval = confidence_interval(old, None, statistic, lens=lens, level=level, **draws)
    ends = (interval.low, interval.high, comparison.low, comparison.high)
    least, most, low, high = (float(end) for end in ends if end is not None)

    def change(t: float, d: float) -> float:
        return sqrt(max(t + d, 0.0)) - sqrt(max(t, 0.0))

    worse = change(comparison.estimate_b, comparison.difference)
    lowest = change(most if low >= 0.0 else min(max(-low, least), most), low)
    return ErrorBounds(worse, worse, lowest, change(least if high >= 0.0 else most, high), share)
