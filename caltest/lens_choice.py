"""Which lens is used: the one named, a user's function, or the usual one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from caltest._base.alignment import moved, shifts_of
from caltest._base.arrays import FloatArray, codes, largest
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.lenses import Canonical, Lens, LensLike, OneVsRest, Relabelling, Subject, TopK
from caltest.predictions import NamedClasses, Predictions
from caltest.results import FoldSummary


@dataclass(frozen=True, repr=False)
class FunctionLens(Lens):
    """A user's function as a lens: what it returns is checked, and keeps the facts of the rows."""

    function: Callable[[Predictions], Predictions]

    def __call__(self, data: Predictions) -> Predictions:
        induced = self.function(data)
        if not isinstance(induced, Predictions):
            raise StatisticError(
                f"the lens {self!r} returned {type(induced).__name__}; a lens takes Predictions "
                "and returns Predictions, for instance with Predictions.of(probs, labels)"
            )
        if induced.n == data.n:
            columns = {name: vars(induced)[name] for name in ("probs", "labels", "classes")}
            return replace(data, **columns, induced=True)
        facts = (induced.weights, data.weights), (induced.clusters, data.clusters)
        if any(ours is None and theirs is not None for ours, theirs in facts):
            raise StatisticError(
                f"the lens {self!r} picks rows and loses their weights or clusters: pick them with "
                "data.take(rows)"
            )
        return replace(induced, induced=True)

    def __repr__(self) -> str:
        return name_of(self.function)


@dataclass(frozen=True, repr=False)
class Aligned(Lens):
    """A lens that moves the log-odds of every fold, so that all have the mean of all rows.

    ``shifts`` (F, K) are those of what the lens shows of the ``whole`` data. Labels of a fold are
    independent of its model, but its rows were left out where others learned their level.
    """

    lens: Lens
    shifts: FloatArray = field(compare=False)
    summary: FoldSummary = field(compare=False)

    @classmethod
    def of(cls, lens: Lens, data: Predictions) -> Aligned:
        """Find the levels of all rows that these were taken from; StatisticError for few a fold."""
        whole = data.whole or data
        assert whole.folds is not None
        counts = np.bincount(whole.folds)
        counts = counts[counts > 0]
        if whole.n / counts.size < max(10.0, np.sqrt(whole.n) / 2.0):
            raise StatisticError(
                f"folds hold {whole.n / counts.size:.1f} rows on average: leave-one-out "
                "predictions mirror the label that was left out, and no test holds its level on "
                "them. Predict again in 5 or 10 folds (caltest.sklearn.out_of_fold)"
            )
        for column in (whole.clusters, whole.crossed):
            if column is None:
                continue
            pairs = np.unique(np.column_stack([column, whole.folds]), axis=0)
            torn = pairs[1:][pairs[1:, 0] == pairs[:-1, 0], 0]
            if torn.size:
                raise StatisticError(
                    f"the cluster of row {int(np.argmax(column == torn[0]))} has rows in several "
                    "folds: its models know labels of the same cluster. Deal whole clusters to "
                    "folds (GroupKFold) and predict again"
                )
        induced = lens(whole)
        assert induced.folds is not None
        w = np.ones(induced.n) if induced.weights is None else induced.weights
        shifts = shifts_of(induced.probs, induced.folds, w)
        return cls(lens, shifts, _summary(induced.take(w > 0.0), w[w > 0.0]))

    def __call__(self, data: Predictions) -> Predictions:
        induced = self.lens(data)
        assert induced.folds is not None
        probs, inside = induced.probs, largest(induced.probs) < 1.0
        if self.shifts.any():
            probs = probs.copy()
            probs[inside] = moved(probs[inside], self.shifts[induced.folds[inside]])
        return replace(induced, probs=probs, folds=None, whole=None, induced=True)

    @property
    def subject(self) -> Subject:
        return self.lens.subject

    def components(self, data: NamedClasses) -> tuple[str, ...]:
        return self.lens.components(data)

    def relabelling(self, data: Predictions) -> Relabelling:
        return self.lens.relabelling(data)

    def __repr__(self) -> str:
        return repr(self.lens)


def _summary(induced: Predictions, w: FloatArray) -> FoldSummary:
    """Say how folds differ, in the event or the likeliest class."""
    from scipy.special import chdtrc

    assert induced.folds is not None
    c = 0 if induced.n_classes == 2 else int((w @ induced.probs).argmax())
    p, fold = induced.probs[:, c], codes(induced.folds)
    mass, rows = np.bincount(fold, w), np.bincount(fold)
    n = mass**2 / np.bincount(fold, w**2)  # effective numbers
    v = p * (1.0 - p)
    means = np.bincount(fold, w * p) / mass
    d = means - w @ p / w.sum()
    scale = np.sqrt((w**2 * d[fold] ** 2) @ v)
    within = w @ (p - means[fold]) ** 2 / w.sum() * n.sum() / max(n.sum() - n.size, 1.0)
    noise = (w @ v / w.sum()) / np.maximum(n.sum() / n - 1.0, 1.0) ** 2
    differ = (n * d**2 / np.maximum(within + noise, 1e-300)).sum()
    return FoldSummary(
        count=n.size,
        smallest=int(rows.min()),
        largest=int(rows.max()),
        moved=float(np.abs(d).max()),
        contrast=float((w * d[fold]) @ ((induced.labels == c) - p) / max(scale, 1e-300)),
        random=float(chdtrc(n.size - 1, differ)),
    )


def default_lens(data: Predictions) -> Lens:
    """Return the lens used when none is named: the event of two classes, else the top class."""
    if data.induced:  # what a lens has made is looked at as it is
        return Canonical()
    return OneVsRest(1) if data.n_classes == 2 else TopK(1)


def as_lens(lens: LensLike | None, data: Predictions) -> Lens:
    """Return the lens to use, the usual one for None; StatisticError for what is none."""
    plain = _plain(lens.lens if isinstance(lens, Aligned) else lens, data)
    return plain if data.folds is None else Aligned.of(plain, data)


def _plain(lens: LensLike | None, data: Predictions) -> Lens:
    if lens is None:
        return default_lens(data)
    if data.followup is not None and lens != default_lens(data):
        raise StatisticError(f"follow-up knows of its event only, so lens={lens!r} is left out")
    if isinstance(lens, Lens):
        return lens
    if not callable(lens) or isinstance(lens, type):
        raise StatisticError(f"lens must be a lens such as TopK(1) or a function, not {lens!r}")
    wrapped = FunctionLens(lens)
    swapped = replace(data, labels=(data.labels + 1) % data.n_classes)
    if not np.array_equal(wrapped(swapped).probs, wrapped(data).probs):
        raise StatisticError(
            f"the lens {wrapped!r} makes probabilities, or picks rows, by looking at the labels: "
            "no test would be valid after that"
        )
    return wrapped
