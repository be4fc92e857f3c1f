"""The seam: a statistic, the same with its predictions fixed, and what that may offer.

``statistic.given(data)`` returns a :class:`Prepared`, a function of the outcomes. It has to be able
to answer for label vectors, one by one or in batches; all else is optional, and each offer opens
one door: ``cell_law`` the exact null, ``laws`` limit laws, ``estimand`` intervals and comparisons,
``of_residuals`` everything that moves residuals instead of labels, ``fast`` a fused kernel.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._base.arrays import largest
from caltest._base.written import Written, name_of
from caltest.errors import StatisticError
from caltest.lenses import OneVsRest
from caltest.nulls import AsymptoticNull, NullDistribution
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.simulate import Scheme, Shortcut
from caltest.statistics.cells import CellLaw, Cells, Estimand

#: Total weight of a cell up to which its exact law is computed.
MAX_MASS = 1e5
#: What verbs accept: a statistic, or a function of an induced problem.
StatisticLike = Callable[..., float]
#: A limit law, made for the labels it is asked about.
Law = Callable[[IntArray], NullDistribution]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A statistic whose predictions are fixed: a function of the outcomes.

    A subclass defines ``__call__``, or ``batch``, or both. The fields below follow its own, by
    keyword.

    Attributes
    ----------
    data : Predictions
        The fixed predictions; of its labels nothing is used.
    cells : Cells, optional
        The partition of a binned statistic.
    estimand : Estimand, optional
        Which error the statistic estimates: opens intervals and comparisons.
    two_sided : bool
        Whether small values speak against calibration as well as large ones.
    centre : float
        From where a two-sided value is measured: evidence is the distance, on either side.
    degree : int, optional
        The degree of value − centre in the residuals, where the statistic sees outcomes through
        them only: opens :meth:`of_residuals`.
    null_mean : float, optional
        The mean under calibration, where it is known in closed form.
    enough : float
        Surprising outcomes, Σ_i m_i with m_i = 1 − max_k p_ik, of weighted rows
        (Σ w_i m_i)² / Σ w_i² m_i, that a calibrated model must expect for the limit law to hold.
    """

    data: Predictions = field(repr=False)
    cells: Cells | None = field(default=None, kw_only=True, repr=False)
    estimand: Estimand | None = field(default=None, kw_only=True)
    two_sided: bool = field(default=False, kw_only=True)
    centre: float = field(default=0.0, kw_only=True)
    degree: int | None = field(default=None, kw_only=True)
    null_mean: float | None = field(default=None, kw_only=True)
    enough: float = field(default=0.0, kw_only=True)
    #: The law of its own that the automatic null is, by name: that of e-values.
    own_null: ClassVar[Literal["asymptotic", "distribution-free", "betting"] | None] = None
    #: Whether weights of the data count in batches though it has a degree.
    weighs: ClassVar[bool] = False
    #: Whether it is known from the events in its cells: opens :meth:`of_events`.
    by_events: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if cls.__call__ is Prepared.__call__ and cls.batch is Prepared.batch:
            raise TypeError(f"{cls.__name__} must define __call__ or batch")

    @property
    def rows_per_cell(self) -> float | None:
        """Rows in an occupied cell, on average; None without cells."""
        return None if self.cells is None else float(self.cells.counts.mean())

    def __call__(self, labels: IntArray) -> float:
        """Return the value for labels of shape (n,)."""
        return float(self.batch(labels[None, :])[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n); they are not to be kept or changed.

        This is the whole fast path of a statistic: whatever draws labels calls it.
        """
        return np.array([self(row) for row in labels], dtype=np.float64)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for outcomes seen through moved residuals.

        Parameters
        ----------
        residuals : ndarray of shape (n, K)
            r_i = w_i (onehot(y_i) − p_i); ``data.residuals`` gives those of the observed labels.
        multipliers : ndarray of shape (B, n)
            Row i of data set b has the residuals ``multipliers[b, i] * residuals[i]``.

        Returns
        -------
        ndarray of shape (B,)

        Raises
        ------
        StatisticError
            When the statistic is no function of the residuals; ``degree`` is then None.
        """
        raise StatisticError(f"{type(self).__name__} sees outcomes otherwise than by residuals")

    def of_events(self, events: Any) -> FloatArray:
        """Return the values for weights of the events (B, L) in the cells, with the law's bits.

        A gap may be as small as the rounding of what it is between: where all is nearly certain, an
        observed value of other bits would be no tie. StatisticError where not ``by_events``.
        """
        raise StatisticError(f"{type(self).__name__} sees outcomes otherwise than by cells")

    def cell_law(self) -> CellLaw | None:
        """Return how the value is made of cell counts, where it is."""
        return None

    def laws(self) -> Mapping[str, Law]:
        """Return the limit laws, by the name that ``null=`` takes."""
        return {}

    def doubt(self) -> str | None:
        """Return why the limit law is known to fail in data such as these, if it is."""
        chance, w = 1.0 - largest(self.data.probs), self.data.weights
        expected = float(chance.sum())
        if w is not None:
            expected = float((w * chance).sum() ** 2 / max((w**2 * chance).sum(), 1e-300))
        if expected >= self.enough:
            return None
        return f"only {expected:.2g} surprising outcomes are expected, it takes {self.enough:g}"

    def fast(self, scheme: Scheme) -> Shortcut | None:
        """Return a fused kernel for the draws of a scheme, where it pays."""
        return None


class Statistic(ABC, Written):
    """A number that says how far predictions are from calibrated; large values speak against it.

    One that ``takes_weights`` makes use of those of the data in what ``given`` returns: in its own
    batches if it has no ``degree`` or ``weighs``, and else in :meth:`Prepared.of_residuals`,
    through which weighted outcomes are then seen.
    """

    takes_weights: ClassVar[bool] = False

    def __call__(self, probs: Any, labels: Any = None, **facts: Any) -> float:
        """Return the value; arguments are those of :meth:`Predictions.of`, and checked as there.

        Two classes are looked at as by ``OneVsRest(1)``, unless a lens has said otherwise. Arrays
        cannot say so: a function that gets those of an induced problem passes
        ``Predictions(probs, labels, induced=True)``.
        """
        data = as_problem(Predictions.of(probs, labels, **facts).in_ratios())
        return prepare(self, data)(data.labels)

    @abstractmethod
    def given(self, data: Predictions) -> Prepared:
        """Fix the predictions of an induced problem; what is left is a function of the outcomes."""


@dataclass(frozen=True, eq=False)
class Weighted(Prepared):
    """A statistic of weighted rows, which sees labels through w (onehot(y) − p)."""

    inner: Prepared

    @classmethod
    def of(cls, inner: Prepared) -> Weighted:
        """Take over what the statistic offers, but for fused kernels, which count rows."""
        facts = ("cells", "estimand", "two_sided", "centre", "degree", "null_mean")
        return cls(inner.data, inner, **{name: getattr(inner, name) for name in facts})

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n)."""
        probs, weights = self.data.probs, self.data.weights
        if self.data.n_classes == 2:
            if self.inner.by_events and self.cells is not None:
                return self.inner.of_events(self.cells.sum((labels == 0) * weights, axis=1))
            each = np.tile([1.0, -1.0], (self.data.n, 1))
            return self.inner.of_residuals(each, weights * ((labels == 0) - probs[:, 0]))
        once = np.ones((1, self.data.n))
        moved = (replace(self.data, labels=row).residuals for row in labels)
        return np.concatenate([self.inner.of_residuals(r, once) for r in moved])

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        return self.inner.of_residuals(residuals, multipliers)

    def cell_law(self) -> CellLaw | None:
        """Return how the value is made of weighted counts, which have to be whole numbers."""
        weights, cells = self.data.weights, self.cells
        whole = weights is not None and bool((weights == np.rint(weights)).all())
        small = cells is not None and float(cells.mass.max()) <= MAX_MASS
        return self.inner.cell_law() if whole and small else None

    def laws(self) -> Mapping[str, Law]:
        """Return the limit laws, by the name that ``null=`` takes."""
        return self.inner.laws()

    def doubt(self) -> str | None:
        """Return why the limit law is known to fail in data such as these, if it is."""
        return self.inner.doubt()


@dataclass(frozen=True, eq=False)
class PreparedFunction(Prepared):
    """A plain function ``(probs, labels) -> float``, or with a third parameter ``weights``."""

    function: StatisticLike
    weighted: bool

    def __call__(self, labels: IntArray) -> float:
        if self.weighted:
            return float(self.function(self.data.probs, labels, self.data.weights))
        return float(self.function(self.data.probs, labels))


def prepare(statistic: StatisticLike, data: Predictions) -> Prepared:
    """Fix the predictions of whatever may be used as a statistic: the one place that looks.

    Raises
    ------
    StatisticError
        When it is neither a statistic nor a function, or does not take the weights of the data.
    """
    if isinstance(statistic, Statistic):
        if data.weights is None:
            return statistic.given(data)
        if not statistic.takes_weights:
            raise StatisticError(f"{statistic!r} does not take weights yet")
        inner = statistic.given(data)
        return inner if inner.degree is None or inner.weighs else Weighted.of(inner)
    if not callable(statistic) or isinstance(statistic, type):
        raise StatisticError(
            f"statistic must be a statistic such as ECE(15) or a function (probs, labels) -> "
            f"float, not {statistic!r}"
        )
    weighted = _takes_weights(statistic)
    if data.weights is not None and not weighted:
        raise StatisticError(
            f"{name_of(statistic)} does not take weights: give it a third parameter named weights"
        )
    return PreparedFunction(data, statistic, weighted)


def _takes_weights(function: StatisticLike) -> bool:
    try:
        return "weights" in inspect.signature(function).parameters
    except ValueError:  # some builtins have no signature
        return False


def as_problem(data: Predictions) -> Predictions:
    """Return data as a statistic sees them: the event of two classes is label 1, or a lens's word.

    Examples
    --------
    >>> as_problem(Predictions.of([0.8, 0.3], [1, 0])).probs
    array([[0.8, 0.2],
           [0.3, 0.7]])
    """
    return OneVsRest(1)(data) if data.n_classes == 2 and not data.induced else data


def event(data: Predictions, statistic: Any) -> FloatArray:
    """Return the probability of class 0 of a two-class problem, shape (n,).

    After ``OneVsRest(c)`` that is class c, after ``TopK(1)`` that the top class is right.

    Raises
    ------
    StatisticError
        When there are more than two classes.
    """
    if data.n_classes != 2:
        raise StatisticError(
            f"{name_of(statistic)} is for two classes, but there are {data.n_classes}: look "
            "through a two-class lens such as TopK(1) or OneVsRest(c)"
        )
    return np.ascontiguousarray(data.probs[:, 0])


def by_value(p: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows by increasing p, and where each group of equal values ends."""
    order = np.argsort(p, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(p[order])) + 1, p.size)


def normal(mean: float, deviation: float, labels: IntArray) -> AsymptoticNull:
    """Return the normal law, the same for all labels."""
    from scipy.stats import norm

    return AsymptoticNull(norm(mean, deviation))


def chi_squared(df: int, labels: IntArray) -> AsymptoticNull:
    """Return the χ² law with ``df`` degrees of freedom, the same for all labels."""
    from scipy.stats import chi2

    return AsymptoticNull(chi2(df))
