"""Search of all segments of features for miscalibration: :func:`segment_search`.

Its lattice of conditions and the scan statistic are in :mod:`caltest.inference.lattice`; this
module selects columns, describes the segments found, and estimates the error that they explain.
"""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from itertools import takewhile
from typing import Any, Unpack

import numpy as np
from scipy.special import ndtri, rel_entr

from caltest._base.arrays import (
    RNG,
    BoolArray,
    FloatArray,
    IntArray,
    fraction,
    one_of,
    progress,
    whole,
)
from caltest._base.features import Feature
from caltest._base.written import explained, several
from caltest.data import Predictions, RowFacts
from caltest.data.facts import by_appearance
from caltest.data.lenses import LensLike, OneVsRest, TopK
from caltest.data.questions import rankdata
from caltest.errors import DoubtfulInputWarning, StatisticError, spelt
from caltest.inference._input import Analysis
from caltest.inference.lattice import (
    ALONE,
    LATTICE_SHIFTS,
    TIES,
    CutFeature,
    EvidenceLaw,
    LabelSchemes,
    Lattice,
    Learner,
    Scan,
    log_moment,
    taught,
    tilted,
)
from caltest.nulls import Run, Workers, check_run
from caltest.results import Finding, Segment, SegmentSearch

#: Columns above which segments have one condition, unless two are asked for.
MANY_COLUMNS = 60


#: Rows of a segment, at least, if nobody says otherwise.
MIN_ROWS = 30


#: The chance below which cells of one label each are no chance.
LABEL_CHANCE = 1e-6


#: Segments that are shown where none is listed.
STRONGEST = 5


@explained
def segment_search(
    probs: object,
    labels: object = None,
    features: object = None,
    *,
    lens: LensLike | None = None,
    max_depth: int | None = None,
    min_rows: int = MIN_ROWS,
    learner: Learner | None = None,
    alpha: float = 0.05,
    n_resamples: int = 999,
    early_stop: bool = False,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[RowFacts],
) -> SegmentSearch:
    """Search segments of one and two features for miscalibration.

    The hypothesis is P(y = 1 | x, p) = p in every row. A feature that the model has not used may
    fail here although the model is calibrated on average: then it would improve the model.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    features : data frame, mapping, array_like of shape (n, d), or names of columns of ``probs``
        Numbers, dates, booleans and text, some cells of which may be missing; not made from these
        labels. Left out for :class:`Predictions` that hold features.
    lens : lens, optional
        The lens of the event, which leaves two classes. With ``TopK(1)`` of more than two, the
        predicted class is one more column.
    max_depth : {1, 2}, optional
        How many conditions a segment has; by default 2, and 1 of more than 60 columns.
    min_rows : int, default 30
        A segment has so many rows at least, and so many rows are not in it.
    learner : object, optional
        With ``fit(X, r)`` and ``predict(X)``, as scikit-learn's regressors: half of the rows (whole
        clusters) teach it residuals, the others are searched with one more column, its prediction.
    alpha : float, default 0.05
        The chance that a calibrated segment is listed, and that any interval misses.
    n_resamples : int, default 999
        Label vectors that are redrawn; the most there can be with ``early_stop``.
    early_stop, rng, workers, **facts
        As in :func:`calibration_test`; with clusters, :class:`SharedRedraws` draws the labels.

    Returns
    -------
    SegmentSearch

    Raises
    ------
    InvalidPredictionsError
        When probs and labels are not a forecast and its outcomes, or features not theirs.
    StatisticError
        For more than two classes after the lens, fewer than 2 ``min_rows`` rows, columns that are
        constant all together, fewer than five clusters, or a learner that is none.

    Warns
    -----
    DoubtfulInputWarning
        For a column from which outcomes follow: is it known before them?

    Notes
    -----
    Over 42 shifts t of the log-odds, from 1/256 to 4 to both sides, a segment A gains

    G_A = max_t [t Σ_A w y − Σ_A w ln(1 − p + p eᵗ)] / φ_A,  φ_A = Σ_A w² v / Σ_A w v,

    v = p (1 − p); its penalty π_A is ln(columns × cells of its column), or ln(pairs × cells ×
    cells). The law of max (G_A − π_A) under redrawn labels is exact at every n (Westfall & Young
    1993). O(42 n d² / 8) at first, O(n + min(events, others) d² / 8 + S) a redraw, for d columns
    and S segments. The concept page on segments has cells, intervals and the error.

    References
    ----------
    Zhang & Neill, "Identifying significant predictive bias in classifiers", arXiv:1611.08292.
    Kulldorff, "A spatial scan statistic", Comm. Statist. Theory Methods 26 (1997).

    Examples
    --------
    >>> import caltest as ct
    >>> rng = np.random.default_rng(1)
    >>> age, p = rng.integers(20, 90, 2000), rng.uniform(0.1, 0.6, 2000)
    >>> y = rng.random(2000) < np.where(age > 80, p + 0.3, p)
    >>> answer = ct.segment_search(p, y, {"age": age}, rng=0)
    >>> answer.segments[0].name, round(answer.segments[0].at_least, 2)
    ('age > 82', 0.18)
    """
    one_of("max_depth", max_depth, (None, 1, 2))
    one_of("early_stop", early_stop, (True, False))
    whole("min_rows", min_rows)
    fraction("alpha", alpha)
    check_run(n_resamples, rng, workers)
    if alpha * (1 + n_resamples) < 1.0 - 1e-9:
        raise StatisticError(
            f"n_resamples={n_resamples} cannot reject anything at alpha={alpha:g}: take at least "
            f"{int(np.ceil(1.0 / alpha)) - 1}"
        )
    more: Any = facts if features is None else facts | {"features": features}
    analysis = _asked(probs, labels, more, lens, rng)
    data, notes = _event(analysis), list[str]()
    columns, left = _searched_columns(analysis, data)
    if learner is not None:
        data, columns, note = taught(learner, data, columns, rng)
        notes.append(note)
    cut, dropped = _cells_of_columns(data, columns, min_rows)
    dropped += left
    notes += [f"left out: {', '.join(dropped)}"] if dropped else []
    if max_depth is None and len(cut) > MANY_COLUMNS:
        notes.append(f"one condition each, as there are {len(cut)} columns: max_depth=2 takes two")
    depth = max_depth or (1 if len(cut) > MANY_COLUMNS else 2)
    redraws = LabelSchemes.of(data)
    scan = redraws.scan(Lattice.of(cut, data.n, min_rows, depth))
    evidence = scan.evidence(data.labels == 0)
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    law = redraws.evidence_law(scan, float(evidence.max()), run, early_stop)
    by_prediction = redraws.scan(Lattice.of(cut[:1], data.n, min_rows, 1))
    return analysis.result(
        SegmentSearch,
        notes=(*notes, *(() if redraws.summary is None else redraws.summary.notes)),
        alpha=alpha,
        min_rows=min_rows,
        columns=tuple(column.feature.name for column in cut),
        dropped=tuple(dropped),
        learner=None if learner is None else type(learner).__name__,
        clusters=redraws.summary,
        n=data.n,
        **_findings(data, scan, by_prediction, evidence, law, alpha),
    )


def _asked(probs: object, labels: object, facts: Any, lens: LensLike | None, rng: RNG) -> Analysis:
    analysis = Analysis.of("segment_search", probs, labels, facts, lens=lens, rng=rng)
    analysis.needs_two_classes("segment_search")
    return analysis


def searchable(rows: Predictions) -> tuple[str, ...]:
    """Return the names of the features that a search of segments with default options would use.

    ``rows`` are predictions with features. Features that a search leaves out, such as constant
    ones, are missing. Errors and warnings as for :func:`segment_search`.
    """
    analysis = _asked(rows, None, {}, None, None)
    data = _event(analysis)
    columns, _ = _searched_columns(analysis, data)
    cut, _ = _cells_of_columns(data, columns, MIN_ROWS)
    features = {*rows.features.by_name} if rows.features else set()
    return tuple(column.feature.name for column in cut if column.feature.name in features)


def _event(analysis: Analysis) -> Predictions:
    """Return the binary predictions that segments are searched for; class 0 is the event.

    They are event against the rest, as the lens of ``analysis`` leaves them; where it leaves two
    classes as they were given, label 1 is the event.
    """
    data = analysis.induced
    return data if data.induced else OneVsRest(1)(data)


def _searched_columns(analysis: Analysis, data: Predictions) -> tuple[list[Feature], list[str]]:
    """Return (columns, left_out): the features to search, and the names of the features left out.

    ``analysis`` holds the validated data and lens, ``data`` the binary predictions behind it, with
    the features. The prediction itself, and for the top class the predicted class, come first as
    further columns. Left out, with the reason in brackets, are copies of the class or a loss,
    unless the user named them. StatisticError without features.
    """
    if data.features is None:
        raise StatisticError(
            "segment_search needs features: a data frame, a mapping or an array of shape (n, d)"
        )
    rows, derived = analysis.rows, [Feature("prediction", data.probs[:, 0])]
    top, features = rows.probs.argmax(axis=1).astype(np.float64), data.features.columns
    if analysis.lens == TopK(1) and rows.n_classes > 2:
        classes = tuple(map(rows.class_name, range(rows.n_classes)))
        derived.append(Feature("predicted class", top, classes))
    for j, feature in enumerate(derived):
        while derived[j].name in data.features.by_name:
            derived[j] = replace(feature, name=f"the {derived[j].name}")
    same = [f.name for f in features if data.features.unnamed and _matches(f.values, top)]
    left = [f"{name} (the predicted class)" for name in same]
    truth = rows.labels.astype(np.float64)
    others = [f for f in features if data.features.unnamed and f.name not in same]
    told = [f.name for f in others if rows.n_classes > 2 and _matches(f.values, truth)]
    left += [f"{name} (the label)" for name in told]
    losses = [f.name for f in others if f.name not in told and _is_loss(f, rows)]
    left += [f"{name} (a loss: outcomes follow from it and the prediction)" for name in losses]
    of_classes = dict[str, str]()
    if data.features.unnamed and rows.n_classes > 2:
        rest = [f for f in others if f.name not in {*told, *losses}]
        of_classes = {f.name: why for f in rest if (why := _part_of_a_class(f, rows))}
    left += [f"{name} ({why})" for name, why in of_classes.items()]
    gone = {*same, *told, *losses, *of_classes}
    return [*derived, *(f for f in features if f.name not in gone)], left


#: Classes whose outcomes are compared with columns, at most.
CLASSES_COMPARED = 20


def _part_of_a_class(feature: Feature, rows: Predictions) -> str:
    """Return why a column seems to follow from the class that occurred; "" if it does not.

    The goals of two teams follow from who has won, for example. ``feature`` is a column, and
    ``rows`` are predictions of more than two classes with their outcomes; the first 20 classes are
    compared with it as in :func:`_part_of_outcome`.
    """
    for k in range(min(rows.n_classes, CLASSES_COMPARED)):
        p = rows.probs[:, k]
        if why := _part_of_outcome(feature, rows.labels == k, p, rows.weights, MIN_ROWS):
            return why
    return ""


#: Rank correlation from which on a column is taken as a loss.
LOSS_LIKE = 0.99


def _is_loss(feature: Feature, rows: Predictions) -> bool:
    """Return whether a feature is a loss of each row, such as −log p of its outcome.

    ``rows`` are the predictions and outcomes. Ranks of the feature agree with ranks of the
    probability of the outcome that occurred, or of the Brier score, among right predictions and
    among wrong ones, in the same direction. A function of the predictions alone runs in opposite
    directions in the two groups, or follows neither.
    """
    seen = np.linspace(0, rows.n - 1, min(rows.n, LOOKED_AT)).astype(np.int64)
    x, p, y = feature.values[seen], rows.probs[seen], rows.labels[seen]
    if feature.levels is not None or np.isnan(x).any() or np.ptp(x) == 0.0:
        return False
    of_outcome = p[np.arange(seen.size), y]
    brier = (p**2).sum(axis=1) - 2.0 * of_outcome + 1.0
    right = p.argmax(axis=1) == y
    for loss in (-of_outcome, brier):
        alike = [_rank_correlation(x[group], loss[group]) for group in (right, ~right)]
        if min(alike) >= LOSS_LIKE or max(alike) <= -LOSS_LIKE:
            return True
    return False


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Return Spearman's correlation of x and y, (m,) each; 0 for constants and below 10 pairs."""
    if x.size < FEWEST_CONTRADICTED or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _matches(values: FloatArray, top: FloatArray) -> bool:
    """Return whether a feature is the predicted or true class under other names, one to one.

    ``values`` are the feature's numbers, ``top`` the classes, (n,) each. False with missing values.
    """
    if top.size != values.size or np.isnan(values).any():
        return False
    names, codes = np.unique(values, return_inverse=True)
    classes = np.unique(top).size
    if not 1 < names.size == classes:
        return False
    return np.unique(codes * (top.max() + 1.0) + top).size == classes


def _cells_of_columns(
    data: Predictions, columns: list[Feature], min_rows: int
) -> tuple[list[CutFeature], list[str]]:
    """Return (columns cut into cells, names of columns left out).

    ``columns`` are the features to cut, the prediction first, and ``data`` the binary predictions
    with outcomes. Levels of fewer than ``min_rows`` rows share a cell. Columns of one cell,
    repeated ones, and those that give the outcome away are left out; if the user named these, they
    stay, and a DoubtfulInputWarning names them. StatisticError if no feature remains, or for fewer
    than 2 ``min_rows`` rows.
    """
    if data.n < 2 * min_rows:
        raise StatisticError(
            f"segments of {min_rows} rows with as many others need {2 * min_rows} rows, and there "
            f"{'is' if data.n == 1 else 'are'} {data.n}: pass more, or a smaller min_rows"
        )
    cut, dropped, first_of = list[CutFeature](), list[str](), dict[bytes, str]()
    assert data.features is not None
    unnamed = data.features.unnamed
    for feature in columns:
        column = CutFeature.of(feature, min_rows)
        cells = column.code.tobytes() + column.paired.of.tobytes()
        first = first_of.setdefault(cells, feature.name)
        if cut and column.alone.size < 2:
            dropped.append(f"{feature.name} (one cell)")
        elif first != feature.name:
            dropped.append(f"{feature.name} (the same cells as {first})")
        elif unnamed and cut and _tells(column, data, min_rows):
            dropped.append(f"{feature.name} (outcomes follow from it)")
        elif unnamed and cut and (why := _why_part(column, data, min_rows)):
            dropped.append(f"{feature.name} ({why})")
        else:
            cut.append(column)
    tell = _equal_where_event(cut[1:], data)
    if unnamed and tell:
        cut = [column for column in cut if column.feature.name not in tell]
        dropped += [f"{name} (outcomes follow from it and {tell[name]})" for name in tell]
    known = [c for c in cut[1:] if not unnamed and c.feature.name in data.features.by_name]
    leaks = [
        c.feature.name
        for c in known
        if c.feature.name in tell or _tells(c, data, min_rows) or _why_part(c, data, min_rows)
    ]
    if leaks:
        others = ",".join(name for name in data.features.by_name if name not in leaks)
        search = spelt(f"search the others, features= (--features {shlex.quote(others)})")
        warnings.warn(
            f"features: outcomes follow from {' and from '.join(map(repr, leaks))}: known before "
            f"them? If not, {search if others else 'leave it out'}",
            DoubtfulInputWarning,
            stacklevel=3,
        )
    if len(cut) < 2:
        raise StatisticError(
            f"no column is left to search: {', '.join(dropped)}; pass features of several values"
        )
    return cut, dropped


def _why_part(column: CutFeature, data: Predictions, min_rows: int) -> str:
    """Return why a column seems to follow from the outcome (:func:`_part_of_outcome`), or "".

    ``column`` is a feature cut into cells, and ``data`` are the binary predictions with outcomes,
    of which class 0 is the event; ``min_rows`` is the least number of rows of a segment.
    """
    event, p = data.labels == 0, data.probs[:, 0]
    return _part_of_outcome(column.feature, event, p, data.weights, min_rows)


#: Share of the rarer outcomes that may contradict a column from which outcomes follow, how many
#: times as many misses predictions expect, and the fewest of either outcome that show it.
CONTRADICTING, EXPECTED, FEWEST_CONTRADICTED = 0.02, 4.0, 10


#: Rows that are looked at for a column from which outcomes follow, at most.
LOOKED_AT = 50_000


def _tells(column: CutFeature, data: Predictions, min_rows: int) -> bool:
    """Return whether a column gives the outcome away, as a consequence of it would.

    It does if cells of at least ``min_rows`` rows hold only events or only non-events although the
    predictions make that very unlikely, or if its values predict the outcome almost without error.
    ``column`` is a feature cut into cells; ``data`` are the binary predictions, of which class 0 is
    the event.
    """
    rows, others = np.bincount(column.code), np.bincount(column.code, data.labels != 0)
    large = rows >= min_rows
    if {*(others[large] / rows[large])} == {0.0, 1.0}:
        likely = data.probs[np.arange(data.n), data.labels][large[column.code]]
        if np.log(np.maximum(likely, 1e-300)).sum() < np.log(LABEL_CHANCE):
            return True
    seen = np.linspace(0, data.n - 1, min(data.n, LOOKED_AT)).astype(np.int64)
    event = data.labels[seen] == 0
    rare = min(int(event.sum()), int((~event).sum()))
    if rare < FEWEST_CONTRADICTED:
        return False
    against = _contradictions(column.feature.values[seen], event)
    misses = float((1.0 - data.probs[seen].max(axis=1)).sum())
    return against <= CONTRADICTING * rare and misses >= max(
        EXPECTED * against, -np.log(LABEL_CHANCE)
    )


#: Rows by which most pairs of columns are told apart.
FIRST_ROWS = 200


def _equal_where_event(columns: list[CutFeature], data: Predictions) -> dict[str, str]:
    """Return columns that equal a partner in all rows of one outcome, and in no other.

    They are returned as a dict from the name of a column to the name of its partner.

    An answer and its key are such a pair, if the outcome is that the answer is right. Both are
    numbers or both text, without missing values. ``columns`` are features cut into cells, of the
    rows of ``data``. O(d² + n) for d columns, if pairs differ early.
    """
    event, found = data.labels == 0, dict[str, str]()
    if event.all() or not event.any():
        return found
    whole = [c.feature for c in columns if not c.feature.missing.any() and not c.feature.dates]
    words = dict[str, int]()
    for text in (False, True):
        alike = [feature for feature in whole if (feature.levels is not None) is text]
        values = [_in_common_codes(feature, words) for feature in alike]
        few = np.array([v[:FIRST_ROWS] for v in values])
        for k in range(1, len(alike)):
            differs = (few[:k] == few[k]) != event[:FIRST_ROWS]
            for j in np.flatnonzero(differs.all(axis=1) | ~differs.any(axis=1)).tolist():
                unlike = (values[j] == values[k]) != event
                if unlike.all() or not unlike.any():
                    found |= {alike[j].name: alike[k].name, alike[k].name: alike[j].name}
    return found


def _in_common_codes(feature: Feature, words: dict[str, int]) -> FloatArray:
    """Return the values of a feature without missing cells as numbers, (n,); text by common codes.

    ``words`` maps each text to its code; texts that are new are added to it.
    """
    if feature.levels is None:
        return feature.values
    places = [words.setdefault(level, len(words)) for level in feature.levels]
    return np.array(places, dtype=np.float64)[feature.values.astype(np.int64)]


#: Share of rows with the lowest value, from which on it is looked at beside all others.
COMMON_VALUE = 0.05

#: Values of a column that are looked at one by one, at most, and the share of outcomes up to which
#: a value with no others is taken to follow from them.
VALUES_TRIED, RARER = 12, 1 / 3


def _part_of_outcome(
    feature: Feature, event: BoolArray, p: FloatArray, weights: FloatArray | None, min_rows: int
) -> str:
    """Return why a column seems to follow from the outcome, in excess of predictions; "" if not.

    A step on the way to the outcome is like that, such as a click before a purchase, and so is a
    consequence, such as a chargeback after a fraud: both are known after the prediction only. One
    outcome is absent on one side of the column. Both this absence and the excess of that outcome on
    the other side must have a probability below 1e-6 by the predictions. Where only one side is
    off, as at a hospital that reports no events, the predictions are in question and not the
    column.

    Sides are the missing cells, the lower of two values or a common lowest value, and the rest. For
    numbers of many values, such as the length of a stay that death ends, the side beyond all events
    is looked at as well: a quarter of the expected events must be absent there. For a score that
    only events reach, the side beyond all other rows has to hold a quarter of the events. Such a
    side has at least ``min_rows`` rows: fewer rows of one outcome may be a segment.

    Of up to twelve values one may hold nothing but the rarer outcome, of at most a third of the
    rows. Then its rows suffice, as many as ``min_rows``, with a probability below 1e-6 divided by
    the number of values: a segment in which the rarer outcome is certain is hardly a feature.

    Parameters
    ----------
    feature : Feature
        The column, a name with numbers (n,) that may be missing.
    event : ndarray of shape (n,)
        Outcomes, booleans.
    p : ndarray of shape (n,)
        Probabilities of the event.
    weights : ndarray of shape (n,), or None
        Weights of the rows; None for 1.
    min_rows : int
        Rows of a segment, at least.
    """
    x, w = feature.values, np.ones(len(p)) if weights is None else weights
    missing = np.isnan(x)
    values, places = np.unique(x[~missing], return_inverse=True)
    if not values.size:
        return ""
    lowest, any_side = x == values[0], list[tuple[BoolArray, str]]()
    any_side.append((missing, "where it is missing or not only"))
    if values.size == 2 or lowest.mean() >= COMMON_VALUE:
        any_side.append((lowest, "at one of its values only" if values.size == 2 else SOME_VALUES))
    if not feature.dates and feature.levels is None:
        any_side += [(side, SOME_VALUES) for side in _beyond_events(x, event, p)]
    of_either = ((event, p), (~event, 1.0 - p))
    for absent, risk in of_either:
        for side, where in any_side:
            for pure in (side, ~side):
                if _is_off_on_both_sides(pure, absent, risk, w):
                    return f"one outcome occurs {where}"
    held = list[tuple[BoolArray, BoolArray, FloatArray]]()
    for absent, risk in of_either:
        if not feature.dates and feature.levels is None:
            for side in (x > x[absent].max(initial=-np.inf), x < x[absent].min(initial=np.inf)):
                if side.sum() - absent[side].sum() >= SHARE_BEYOND * (~absent).sum():
                    held.append((side, absent, risk))
        if 2 <= values.size <= VALUES_TRIED and float(w @ ~absent) <= RARER * float(w.sum()):
            rows = np.bincount(places.ravel())
            for k in np.flatnonzero((rows >= min_rows) & (rows < len(x))):
                side = np.zeros(len(x), dtype=bool)
                side[~missing] = places.ravel() == k
                if _is_absent(side, absent, risk, LABEL_CHANCE / values.size):
                    return f"one of its values has one outcome only, {several(int(rows[k]), 'row')}"
    for side, absent, risk in held:
        if side.sum() >= min_rows and _is_off_on_both_sides(side, absent, risk, w):
            return f"one outcome occurs {SOME_VALUES}"
    return ""


#: Where an outcome occurs that is absent at the other values.
SOME_VALUES = "at some of its values only"


def _is_absent(pure: BoolArray, event: BoolArray, p: FloatArray, chance: float) -> bool:
    """Return whether an event is absent in some rows with a probability ∏ (1 − p) < ``chance``.

    ``pure`` marks the rows, ``event`` the outcomes, and ``p`` are the probabilities of the event,
    (n,) each.
    """
    if not pure.any() or event[pure].any():
        return False
    return float(np.log1p(-np.minimum(p[pure], 1.0 - 1e-12)).sum()) < np.log(chance)


def _is_off_on_both_sides(pure: BoolArray, event: BoolArray, p: FloatArray, w: FloatArray) -> bool:
    """Return whether an event is absent in some rows and too frequent in the others.

    ``pure`` marks the rows, ``event`` the outcomes, ``p`` are the probabilities of the event and
    ``w`` the weights, (n,) each. The probabilities of the absence (:func:`_is_absent`) and of the
    excess, by Chernoff's bound for the mean of the others, must both be below 1e-6.
    """
    rest = w[~pure]
    if not rest.sum() > 0.0 or not _is_absent(pure, event, p, LABEL_CHANCE):
        return False
    total = float(rest.sum())
    seen, expected = float(rest @ event[~pure]) / total, float(rest @ p[~pure]) / total
    expected = min(max(expected, 1e-12), 1.0 - 1e-12)
    apart = float(rel_entr(seen, expected) + rel_entr(1.0 - seen, 1.0 - expected))
    return seen > expected and -apart * total**2 / float(rest @ rest) < np.log(LABEL_CHANCE)


#: Share of the expected events that must be absent beyond all others in a column of numbers.
SHARE_BEYOND = 0.25


def _beyond_events(x: FloatArray, event: BoolArray, p: FloatArray) -> list[BoolArray]:
    """Return masks of the rows above, and of the rows below, all events in a column of numbers.

    The list has at most two boolean arrays (n,): masks with less than a quarter of the expected
    events are left out. ``x`` are the values of the column, ``event`` the outcomes and ``p`` the
    probabilities of the event, (n,) each.
    """
    if not event.any() or np.isnan(x[event]).any():
        return []
    sides = [x > x[event].max(), x < x[event].min()]
    return [side for side in sides if p[side].sum() >= SHARE_BEYOND * p.sum()]


def _contradictions(values: FloatArray, event: BoolArray) -> int:
    """Return the number of outcomes that contradict the best rule that a column allows.

    ``values`` are the column's numbers and ``event`` the outcomes (booleans), (n,) each. The rule
    predicts the outcome by one threshold or, if values have 20 rows or more on average, by each
    value; missing values always have their own outcome. O(n log n).
    """
    missing = np.isnan(values)
    seen = event[missing]
    least = min(int(seen.sum()), int((~seen).sum()))
    levels, code = np.unique(values[~missing], return_inverse=True)
    if not levels.size:
        return least
    events = np.bincount(code.ravel(), event[~missing])
    others = np.bincount(code.ravel()) - events
    low = np.cumsum(events - others)  # events below a threshold in excess of the others
    wrong = min(events.sum() - low.max(initial=0), others.sum() + low.min(initial=0))
    if levels.size <= len(values) / 20:
        wrong = min(wrong, np.minimum(events, others).sum())
    return least + int(wrong)


def _findings(
    data: Predictions, scan: Scan, alone: Scan, evidence: FloatArray, law: EvidenceLaw, alpha: float
) -> dict[str, Any]:
    """Return the fields of a search's result by name: p-values, segments, errors, differences.

    ``data`` are the binary predictions and outcomes. ``scan`` has all S segments with their sums,
    ``alone`` segments of conditions on the prediction only; ``evidence`` (S,), a penalised
    log-likelihood gain of each, belongs to ``scan``, and ``law`` is the null distribution of the
    largest evidence, judged at level ``alpha``. The differences, field ``reach``, are those that a
    search detects.
    """
    y, bar, largest = (data.labels == 0).astype(np.float64), law.bar(alpha), float(evidence.max())

    def segment_of(segment: int) -> Segment:
        return _described(scan, y, float(evidence[segment]), law, bar, segment)

    listed = [*map(segment_of, short_list(scan, y, evidence, bar))]
    order = np.argsort(-evidence[1:], kind="stable")[:STRONGEST] + 1
    cluster = np.arange(data.n) if data.n_clusters is None else by_appearance(data.clusters)
    error, its_error = strong_error(scan, y, cluster, bar)
    by_prediction, _ = strong_error(alone, y, cluster, bar)
    pvalue, impossible = law.pvalue(largest), data.impossible.size
    error_of_p = np.sqrt(pvalue * (1.0 - pvalue) / law.n_draws) if law.n_draws else 0.0
    finding = Finding.MISCALIBRATED if listed else Finding.NO_EVIDENCE
    return {
        "null": law.name,
        "pvalue": pvalue,
        "pvalue_error": float(error_of_p),
        "finding": Finding.IMPOSSIBLE_OUTCOME if impossible else finding,
        "bar": bar,
        "n_segments": scan.lattice.size,
        "whole": segment_of(0),
        "segments": tuple(listed),
        "strongest": () if listed else tuple(map(segment_of, order.tolist())),
        "error": float(np.sqrt(max(error, 0.0))),
        "error_low": float(np.sqrt(max(error - ndtri(1.0 - alpha) * its_error, 0.0))),
        "error_by_prediction": float(np.sqrt(max(by_prediction, 0.0))),
        "reach": found_differences(scan, bar),
        "impossible": impossible,
        "n_resamples": law.n_draws,
        "ended": law.ended,
    }


def _described(
    scan: Scan, y: FloatArray, evidence: float, law: EvidenceLaw, bar: float, segment: int
) -> Segment:
    """Return the description of the segment with index ``segment``, as results have it.

    ``scan`` has all segments with their sums, ``y`` (n,) are events, ``evidence`` is the segment's
    penalised log-likelihood gain in nats and ``law`` the null distribution of the largest one. The
    interval inverts the scan statistic at the critical value ``bar``, so that it holds
    simultaneously over all segments.
    """
    m, price = scan.lattice.rows(segment), float(scan.lattice.price[segment])
    w, p, phi = scan.w[m], scan.p[m], float(scan.dispersion[segment])
    difference, low, high, shift = interval(p, w, y[m], bar + price, phi)
    weight, predicted = float(w.sum()), float(w @ p / w.sum())
    ends = difference, low, high
    ratios = [1.0 + end / predicted if predicted > 0.0 else np.nan for end in ends]
    conditions = scan.lattice.conditions(segment)
    return Segment(
        name=scan.lattice.name(segment),
        conditions=conditions,
        depth=len(conditions),
        n=int(m.sum()),
        weight=weight,
        predicted=predicted,
        observed=predicted + difference,
        difference=difference,
        low=low,
        high=high,
        chance=float(np.sqrt(phi * max(scan.variance[segment], 0.0))) / weight,
        **dict(zip(("ratio", "ratio_low", "ratio_high"), ratios, strict=True)),
        shift=shift,
        gain=evidence + price,
        price=price,
        evidence=evidence,
        pvalue=law.pvalue(evidence),
    )


# ------------------------------------------------------------------------------
# What is said of segments above the bar: no echoes, intervals, and how much it matters.


#: Segments that are listed, tried, and corrected one after the other; the largest correction.
SEGMENTS_LISTED, MOST_TRIED, MOST_CORRECTED, FARTHEST = 10, 40, 50, 6.0


#: Evidence that a second condition has to add to be named before the first alone: 2 nats, χ² of 4.
ADDED_EVIDENCE = 2.0


#: Shifts that stand for "no or every possible event happens".
LAST = 30.0


#: Parts of the rows that are held out in turn, and rows of the others that are learnt from.
HELD_OUT_FOLDS, LEARNT = 5, 50_000


#: Shares of rows whose reach is told; quantile of the power, and how much of the gain the grid has.
REACHED_SHARES, POWER, GAIN_OF_GRID = (0.05, 0.2), 0.84, 0.98


#: Rows that stand for all, spread over the order of predictions.
ROWS_SAMPLED = 100_000


def first_largest(values: FloatArray) -> int:
    """Return the index of the largest of ``values`` (m,).

    It is the first of values that are equal up to rounding.
    """
    return int(np.flatnonzero(values >= values.max() - TIES)[0])


def likelihood(p: FloatArray, w: FloatArray, events: float, t: float) -> float:
    """Return the log-likelihood gain, in nats, of shifting log-odds by ``t``.

    It is t O − Σ w ln(1 − p + p eᵗ).

    ``p`` and ``w`` (m,) are predictions and weights of a segment's rows, ``events`` is O = Σ w y.
    For large negative t it is computed from the complementary label.
    """
    if t < LATTICE_SHIFTS[0]:
        p, events, t = 1.0 - p, float(w.sum()) - events, -t
    return float(t * events - w @ log_moment(p, t))


def best_shift(p: FloatArray, w: FloatArray, events: float) -> float:
    """Return the log-odds shift t at which expected and observed events agree, possibly ±∞.

    ``p`` and ``w`` (m,) are predictions and weights of the rows, ``events`` is Σ w y, the observed
    events.
    """
    from scipy.optimize import brentq

    def gap(t: float) -> float:
        return float(w @ tilted(p, t)) - events

    # Possible labels of one kind only, also where predictions are nearly as sure as 0 and 1.
    if events <= w[p >= 1.0].sum() + 1e-12 or gap(-LAST) >= 0.0:
        return -np.inf
    if events >= w[p > 0.0].sum() - 1e-12 or gap(LAST) <= 0.0:
        return np.inf
    return float(brentq(gap, -LAST, LAST, xtol=1e-13))


def short_list(scan: Scan, y: FloatArray, evidence: FloatArray, bar: float) -> list[int]:
    """Return the indices of the segments to report, at most 10, in the order of their discovery.

    Each has the most evidence after the segments before it are recalibrated, and more than ``bar``,
    the critical value. A segment of fewer columns is preferred to one of more with nearly as much
    evidence. ``scan`` has all S segments with their sums, ``evidence`` (S,) is the penalised
    log-likelihood gain of each, and ``y`` (n,) are events.
    """
    w, q, listed = scan.w, scan.p.copy(), list[int]()
    is_open, remaining = evidence > bar, evidence
    for _ in range(MOST_TRIED):
        if not is_open.any() or len(listed) == SEGMENTS_LISTED:
            break
        s = first_largest(np.where(is_open, remaining, -np.inf))
        if remaining[s] <= bar:
            break
        s = _plainer(scan, np.where(is_open & (remaining > bar), evidence, -np.inf), s)
        is_open[s] = False
        m = scan.lattice.rows(s)
        events = float(w[m] @ y[m])
        shift = best_shift(q[m], w[m], events)
        gain = likelihood(q[m], w[m], events, float(np.clip(shift, -LAST, LAST)))
        if gain / scan.dispersion[s] - scan.lattice.price[s] > bar:
            listed.append(s)
            q[m] = tilted(q[m], np.clip(shift, -FARTHEST, FARTHEST))
            remaining = left(scan, y, q, w, 1e-9)[0]
    return listed


def _plainer(scan: Scan, evidence: FloatArray, segment: int) -> int:
    """Return the index of a segment on fewer of the same columns with about as much evidence.

    If there is none, return ``segment``, the index of the given one, itself. ``scan`` has all S
    segments, ``evidence`` (S,) is the penalised log-likelihood gain of each.
    """
    of = {*scan.lattice.members[segment]}
    alone = takewhile(lambda member: len(member[1]) < 2, enumerate(scan.lattice.members))
    plain = [place for place, member in alone if {*member} < of]
    best = max(plain, key=lambda place: evidence[place], default=segment)
    return best if evidence[best] > evidence[segment] - ADDED_EVIDENCE else segment


def left(
    scan: Scan, y: FloatArray, q: FloatArray, w: FloatArray, floor: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (evidence, gap, variance) of every segment under other predictions ``q``, (S,) each.

    ``scan`` has the S segments, their penalties and dispersions φ. With O and E observed and
    expected events and V the variance of O, the evidence, an approximate log-likelihood gain in
    nats, is (O − E)² / (2 φ max(V, ``floor``)) less the penalty of the segment; the gap is O − E,
    and the variance max(V, ``floor``). ``y``, ``q`` and ``w`` (n,) are events, predictions and
    weights.
    """
    gap, variance = scan.lattice.sums(np.stack([w * (y - q), w * q * (1.0 - q)]))
    variance = np.maximum(variance, floor)
    return 0.5 * gap**2 / (variance * scan.dispersion) - scan.lattice.price, gap, variance


def interval(
    p: FloatArray, w: FloatArray, y: FloatArray, level: float, dispersion: float
) -> tuple[float, float, float, float]:
    """Return (mean residual, low, high, t̂): a segment's observed − predicted with its interval.

    t̂ is the shift of the log-odds that fits the segment best. ``p``, ``w`` and ``y`` (m,) are
    predictions, weights and events of its rows. The interval is {δ(t): l(t̂) − l(t) ≤ level φ ψ},
    with l(t) the log-likelihood gain from shifting log-odds by t, p(t) the shifted predictions, and
    δ(t) the mean of p(t) − p. ``level`` is the allowed loss in nats, φ the ``dispersion``, and ψ =
    max(1, Σ w² (y − p(t̂))² / Σ w² p(t̂) (1 − p(t̂))) allows for errors that cancel in a segment.
    No shift makes an impossible outcome possible: for such rows the ends take any probability.
    """
    from scipy.optimize import brentq

    weight, gap = float(w.sum()), float(w @ (y - p))
    possible = np.where(y > 0.0, p > 0.0, p < 1.0)
    free, offset = float(w[~possible].sum()), float(w[~possible] @ p[~possible])
    p, w, y = p[possible], w[possible], y[possible]
    events, expected = float(w @ y), float(w @ p) + offset
    shift = best_shift(p, w, events)
    at = float(np.clip(shift, -LAST, LAST))
    fit = tilted(p, at)
    v = float(w**2 @ (fit * (1.0 - fit)))
    spread = max(1.0, float(w**2 @ (y - fit) ** 2) / v) if v > TIES else 1.0
    lowest = likelihood(p, w, events, at) - level * dispersion * spread

    def excess_of(t: float) -> float:
        return likelihood(p, w, events, t) - lowest

    def end(side: float) -> float:
        far = at + 2.0 * LAST * side
        if shift == side * np.inf or not np.isfinite(level) or excess_of(far) >= 0.0:
            return float(w[p > 0.0 if side > 0.0 else p >= 1.0].sum())  # all or no possible events
        t = float(brentq(excess_of, min(at, far), max(at, far), xtol=1e-13))
        return float(w @ tilted(p, t))

    low, high = end(-1.0) - expected, end(1.0) + free - expected
    return gap / weight, low / weight, high / weight, at


def strong_error(scan: Scan, y: FloatArray, cluster: IntArray, bar: float) -> tuple[float, float]:
    """Return (D, standard error): D bounds the mean squared error given the features from below.

    The bound holds on average. D is the mean of 2 g r − g² with residuals r = y − p and corrections
    g = q − p, q the predictions corrected on segments with evidence (penalised log-likelihood gain)
    above ``bar``, the critical value. ``scan`` has the segments and predictions, ``y`` (n,) are
    events. Clusters (``cluster`` (n,), the rows themselves if independent) are divided into fifths;
    the corrections of each are learnt on the others. As g has not seen their labels, E[2 g r − g²]
    ≤ E[y − p | x, p]², x the features. The cost is at most 250 times the sums of segments.
    """
    q, fold, w = scan.p.copy(), cluster % HELD_OUT_FOLDS, scan.w
    with progress(HELD_OUT_FOLDS, "folds") as advance:
        for k in range(HELD_OUT_FOLDS):
            others, teaching = np.flatnonzero(fold != k), np.zeros(q.size, dtype=bool)
            teaching[others[:: max(1, -(-others.size // LEARNT))]] = True
            q[fold == k] = _corrected(scan, y, teaching, bar)[fold == k]
            advance(1)
    g = q - scan.p
    d = 2.0 * g * (y - scan.p) - g * g
    mean = float(w @ d / w.sum())
    spread = np.bincount(cluster, w * (d - mean))
    return mean, float(np.sqrt((spread**2).sum()) / w.sum())


def _corrected(scan: Scan, y: FloatArray, teaching: BoolArray, bar: float) -> FloatArray:
    """Return predictions (n,) corrected on segments, with shifts learnt from part of the rows.

    ``scan`` has the segments, ``y`` (n,) are events, and ``teaching`` (n,) marks the rows from
    which shifts are learnt. The segment with most evidence, the penalised log-likelihood gain, is
    shifted by half of its best shift, again and again, until no segment has evidence above ``bar``,
    the critical value, at most 50 times.
    """
    q, w = scan.p.copy(), scan.w * teaching
    for _ in range(MOST_CORRECTED):
        evidence, gap, variance = left(scan, y, q, w, 0.5)
        s = first_largest(evidence)
        if evidence[s] <= bar:
            break
        m = scan.lattice.rows(s)
        q[m] = tilted(q[m], 0.5 * np.clip(gap[s] / variance[s], -1.0, 1.0))
    return q


def found_differences(scan: Scan, bar: float) -> tuple[tuple[float, float | None], ...]:
    """Return pairs (f, difference).

    They say how large an error in a share f of the rows a search would find.

    f is 0.05 and 0.2. The difference between true and predicted probability in a share f of the
    rows is the one that a search finds with power 0.8, None if no difference suffices. ``scan`` has
    the segments, predictions p and weights w, and ``bar`` is the critical value c of the evidence,
    a penalised log-likelihood gain. With the penalty π of one column of numbers, t solves t K′(t) −
    K(t) − 0.84 t √K″(t) = (c + π) / 0.98, K = (f / φ) Σ w ln(1 − p + p eᵗ), φ the dispersion of all
    rows; the difference is (K′(t) − K′(0)) φ / (f Σ w).
    """
    from scipy.optimize import brentq

    order = np.argsort(scan.p, kind="stable")
    order = order[:: -(-order.size // ROWS_SAMPLED)]
    p, w = scan.p[order], scan.w[order] * (scan.w.sum() / scan.w[order].sum())
    columns = len({members for members in scan.lattice.members if len(members) == 1})
    target = (bar + np.log(max(columns, 1) * ALONE)) / GAIN_OF_GRID

    def power(t: float, f: float) -> float:
        fit = tilted(p, t)
        gain = t * (w @ fit) - w @ log_moment(p, t)
        return float(f * gain - POWER * t * np.sqrt(f * (w @ (fit * (1.0 - fit))))) - target

    differences: list[tuple[float, float | None]] = []
    for share in REACHED_SHARES:
        f = share / float(scan.dispersion[0])
        far = next((t for t in np.geomspace(0.01, LAST, 40) if power(t, f) > 0.0), None)
        t = 0.0 if far is None else float(brentq(power, 0.0, far, args=(f,)))
        gap = float((w @ tilted(p, t) - w @ p) / w.sum())
        differences.append((share, None if far is None else gap))
    return tuple(differences)
