"""The verb that searches all segments of features for miscalibration."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from scipy.special import ndtri

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, one_of, whole
from caltest._base.facts import by_appearance
from caltest._base.features import Feature
from caltest.errors import DoubtfulInputWarning, StatisticError
from caltest.inference.analysis import Analysis
from caltest.lenses import LensLike, OneVsRest, TopK
from caltest.predictions import FloatArray, Predictions, RowFacts
from caltest.results import Finding, Segment, SegmentSearch
from caltest.segments.lattice import Column, Lattice
from caltest.segments.learnt import Learner, taught
from caltest.segments.listing import interval, reach, short_list, strong_error
from caltest.segments.null import Law, Redraws
from caltest.segments.scan import Scan
from caltest.simulate import Run, Workers, check_run

#: Columns above which segments have one condition, unless two are asked for.
MANY_COLUMNS = 60
#: Rows of a segment, at least, if nobody says otherwise.
MIN_ROWS = 30
#: The chance below which cells of one label each are no chance.
CHANCE = 1e-6
#: Segments that are shown where none is listed.
STRONGEST = 5


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
    workers: Workers = 1,
    **facts: Unpack[RowFacts],
) -> SegmentSearch:
    """Search all segments of one and two features for those in which a model is miscalibrated.

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
        What the event is; it leaves two classes. With ``TopK(1)`` of more than two, the predicted
        class is one more column.
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
        As in :func:`calibration_test`; of clusters labels are those of :class:`SharedRedraws`.

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
        For a column whose cells hold only events or only others: is it known before the outcome?

    Notes
    -----
    Over 42 shifts t of the log-odds, from 1/256 to 4 to both sides, a segment A gains

    G_A = max_t [t Σ_A w y − Σ_A w ln(1 − p + p eᵗ)] / φ_A,  φ_A = Σ_A w² v / Σ_A w v,

    v = p (1 − p); its price π_A is ln(columns × cells of its column), or ln(pairs × cells × cells).
    The law of max (G_A − π_A) is that of redrawn labels, exact at every n (Westfall & Young 1993).
    O(42 n d² / 8) at first, O(n + min(events, others) d² / 8 + S) a redraw, for d columns and S
    segments. The concept page on segments has cells, intervals and the error.

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
    columns, left = _columns(analysis, data)
    if learner is not None:
        data, columns, note = taught(learner, data, columns, rng)
        notes.append(note)
    cut, dropped = _cells(data, columns, min_rows)
    dropped += left
    notes += [f"left out: {', '.join(dropped)}"] if dropped else []
    if max_depth is None and len(cut) > MANY_COLUMNS:
        notes.append(f"one condition each, as there are {len(cut)} columns: max_depth=2 takes two")
    depth = max_depth or (1 if len(cut) > MANY_COLUMNS else 2)
    redraws = Redraws.of(data)
    scan = redraws.scan(Lattice.of(cut, data.n, min_rows, depth))
    evidence = scan.evidence(data.labels == 0)
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    law = redraws.law(scan, float(evidence.max()), run, early_stop)
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
    takes = {"clusters", "weights", "features"}
    analysis = Analysis.of("segment_search", probs, labels, facts, lens=lens, rng=rng, takes=takes)
    analysis.needs_two_classes("segment_search")
    return analysis


def searchable(rows: Predictions) -> tuple[str, ...]:
    """Return which of all columns of a table are searched where nobody names any."""
    analysis = _asked(rows, None, {}, None, None)
    data = _event(analysis)
    columns, _ = _columns(analysis, data)
    cut, _ = _cells(data, columns, MIN_ROWS)
    features = {*rows.features.named} if rows.features else set()
    return tuple(column.feature.name for column in cut if column.feature.name in features)


def _event(analysis: Analysis) -> Predictions:
    """Return the event of two classes that segments are searched for."""
    data = analysis.induced
    return data if data.induced else OneVsRest(1)(data)


def _columns(analysis: Analysis, data: Predictions) -> tuple[list[Feature], list[str]]:
    """Return the prediction, of many classes the predicted one, and the features; and what not."""
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
        while derived[j].name in data.features.named:
            derived[j] = replace(feature, name=f"the {derived[j].name}")
    same = [f.name for f in features if data.features.unnamed and _matches(f.values, top)]
    left = [f"{name} (the predicted class)" for name in same]
    return [*derived, *(f for f in features if f.name not in same)], left


def _matches(values: FloatArray, top: FloatArray) -> bool:
    """Say whether values and predicted classes are other names for each other."""
    if top.size != values.size or np.isnan(values).any():
        return False
    names, codes = np.unique(values, return_inverse=True)
    classes = np.unique(top).size
    if not 1 < names.size == classes:
        return False
    return np.unique(codes * (top.max() + 1.0) + top).size == classes


def _cells(
    data: Predictions, columns: list[Feature], min_rows: int
) -> tuple[list[Column], list[str]]:
    """Return columns with their cells, and what is left out; warn of what tells the outcome."""
    if data.n < 2 * min_rows:
        raise StatisticError(
            f"segments of {min_rows} rows with as many others need {2 * min_rows} rows, and there "
            f"{'is' if data.n == 1 else 'are'} {data.n}: pass more, or a smaller min_rows"
        )
    cut, dropped, first_of = list[Column](), list[str](), dict[bytes, str]()
    assert data.features is not None
    unnamed = data.features.unnamed
    for feature in columns:
        column = Column.of(feature, min_rows)
        cells = column.code.tobytes() + column.paired.of.tobytes()
        first = first_of.setdefault(cells, feature.name)
        if cut and column.alone.size < 2:
            dropped.append(f"{feature.name} (one cell)")
        elif first != feature.name:
            dropped.append(f"{feature.name} (the same cells as {first})")
        elif unnamed and cut and _tells(column, data, min_rows):
            dropped.append(f"{feature.name} (its cells hold only events or only others)")
        else:
            cut.append(column)
    leaks = [c.feature.name for c in cut[1:] if not unnamed and _tells(c, data, min_rows)]
    if leaks:
        others = ",".join(name for name in data.features.named if name not in leaks)
        search = f"search the others, features= (--features {shlex.quote(others)})"
        warnings.warn(
            f"features: the cells of {' and of '.join(map(repr, leaks))} hold only events or only "
            f"others: known before the outcome? If not, {search if others else 'leave it out'}",
            DoubtfulInputWarning,
            stacklevel=3,
        )
    if len(cut) < 2:
        raise StatisticError(
            f"no column is left to search: {', '.join(dropped)}; pass features of several values"
        )
    return cut, dropped


def _tells(column: Column, data: Predictions, min_rows: int) -> bool:
    """Say whether large cells hold events or others only, and predictions do not explain that."""
    rows, others = np.bincount(column.code), np.bincount(column.code, data.labels != 0)
    large = rows >= min_rows
    if {*(others[large] / rows[large])} != {0.0, 1.0}:
        return False
    likely = data.probs[np.arange(data.n), data.labels][large[column.code]]
    return bool(np.log(np.maximum(likely, 1e-300)).sum() < np.log(CHANCE))


def _findings(
    data: Predictions, scan: Scan, alone: Scan, evidence: FloatArray, law: Law, alpha: float
) -> dict[str, Any]:
    """Return what is found: p-values, segments, the error, and what could have been found."""
    y, bar, largest = (data.labels == 0).astype(np.float64), law.bar(alpha), float(evidence.max())

    def described(segment: int) -> Segment:
        return _described(scan, y, float(evidence[segment]), law, bar, segment)

    listed = [*map(described, short_list(scan, y, evidence, bar))]
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
        "whole": described(0),
        "segments": tuple(listed),
        "strongest": () if listed else tuple(map(described, order.tolist())),
        "error": float(np.sqrt(max(error, 0.0))),
        "error_low": float(np.sqrt(max(error - ndtri(1.0 - alpha) * its_error, 0.0))),
        "error_by_prediction": float(np.sqrt(max(by_prediction, 0.0))),
        "reach": reach(scan, bar),
        "impossible": impossible,
        "n_resamples": law.n_draws,
        "ended": law.ended,
    }


def _described(
    scan: Scan, y: FloatArray, evidence: float, law: Law, bar: float, segment: int
) -> Segment:
    """Return all there is to say of a segment."""
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
