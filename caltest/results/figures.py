"""Results that are curves and diagrams.

All hold arrays, one entry per bin or point, and draw themselves by ``plot``; ``difference`` and
``deviation`` are observed − predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, number
from caltest.errors import StatisticError
from caltest.results import rendering, sketches
from caltest.results.base import Result, short
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.rendering import Card, Columns, Tone, format_p, format_value, p_is
from caltest.results.verdicts import AuditVerdict


@dataclass(frozen=True, eq=False)
class ReliabilityDifference(Result):
    """Result of :func:`caltest.reliability_difference`: one row for each bin that both models use.

    Attributes
    ----------
    predicted : ndarray of shape (L,)
        Mean prediction of both models in the bin, in [0, 1], increasing.
    difference : ndarray of shape (L,)
        Observed − predicted of the first model, less its value for the second, in [−2, 2].
    low, high : ndarray of shape (L,)
        Confidence band of the difference.
    count_a, count_b : ndarray of shape (L,), int
        Number of rows of each model in the bin.
    cell : ndarray of shape (L,), int
        Bin numbers; neighbouring bins have consecutive numbers.
    names : tuple of str
        The two models.
    name : str
        The event.
    subject : str
        "event", or "top" for the top class.
    lens, bins : str
        Lens and binning, written as in Python.
    level : float
        Confidence level of the band, in (0, 1).
    simultaneous : bool
        Whether the level holds for all bins together.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    predicted: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    count_a: IntArray
    count_b: IntArray
    cell: IntArray
    names: tuple[str, str]
    name: str
    subject: str
    lens: str
    bins: str
    level: float
    simultaneous: bool
    title: ClassVar[str] = "Difference of two reliability curves"
    plotter: ClassVar[str] = "panels.difference"

    def _procedure(self) -> list[str]:
        band = f"{'simultaneous ' * self.simultaneous}confidence band of the difference"
        return [self.bins, self.lens, f"{self._percent} {band}"]

    def _tables(self) -> list[Columns]:
        names = ("predicted", "count_a", "count_b", "difference", "low", "high")
        return [{name: vars(self)[name] for name in names}]

    def _card(self) -> Card:
        a, b = self.names
        widest = int(np.abs(self.difference).argmax())
        apart = (self.low > 0.0) | (self.high < 0.0)
        numbers = (
            (
                "bins apart",
                f"{int(apart.sum())} of {self.difference.size}",
                f"{self._percent} band",
            ),
            (
                "largest",
                f"{self.difference[widest]:+.3f}",
                f"{a} − {b}, at a prediction of {self.predicted[widest]:.3g}",
            ),
        )
        axes = (sketches.axes_of(self.subject, self.event_name)[0], f"{a} − {b}")
        ends = (self.low, self.high)
        drawing = sketches.line(self.predicted, self.difference, axes, band=ends, level=0.0)
        return replace(super()._card(), numbers=numbers, drawing=drawing)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        names = ("cell", "predicted", "count_a", "count_b", "difference", "low", "high")
        return rendering.columns_of_arrays({name: vars(self)[name] for name in names})

    def _in_words(self) -> list[str]:
        return [f"Observed − predicted of {self.names[0]}, less its value for {self.names[1]}."]


@dataclass(frozen=True, eq=False)
class BinSensitivity(Result):
    """Result of :func:`caltest.bin_sensitivity`: one row a binning.

    Attributes
    ----------
    bins : tuple of str
        M binnings, written as in Python.
    size : ndarray of shape (M,), int
        Number of bins: as asked for, or of occupied cells.
    estimate : ndarray of shape (M,)
        The expected calibration error (ECE).
    null_mean : ndarray of shape (M,)
        Noise floor: the mean ECE under calibration.
    low, high : ndarray of shape (M,)
        Quantiles of the ECE under calibration.
    pvalue : ndarray of shape (M,)
        p-value of calibration.
    lens, distance : str
        Lens and distance of the ECE.
    level : float
        Probability between ``low`` and ``high`` under calibration, in (0, 1).
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    bins: tuple[str, ...]
    size: IntArray
    estimate: FloatArray
    null_mean: FloatArray
    low: FloatArray
    high: FloatArray
    pvalue: FloatArray
    lens: str
    distance: str
    level: float
    title: ClassVar[str] = "Sensitivity to the bins"
    plotter: ClassVar[str] = "lines.sensitivity"

    def _procedure(self) -> list[str]:
        kinds = " / ".join(dict.fromkeys(map(short, self.bins)))
        ece = f"ECE({kinds}, distance={self.distance})"
        return [ece, self.lens, f"{self._percent} noise band"]

    def _tables(self) -> list[Columns]:
        names = ("bins", "size", "estimate", "null_mean", "low", "high", "pvalue")
        return [{name: vars(self)[name] for name in names}]

    def _card(self) -> Card:
        above = self.estimate > self.high
        numbers = (
            (
                "above the noise band",
                f"{int(above.sum())} of {len(self.bins)}",
                f"binnings, {self._percent} band",
            ),
            (
                "ECE",
                f"{format_value(self.estimate.min())} to {format_value(self.estimate.max())}",
                "over binnings",
            ),
            ("p-values", f"{format_p(self.pvalue.min())} to {format_p(self.pvalue.max())}", ""),
        )
        ends = zip(self.bins, self.estimate, self.low, self.high, above, strict=True)
        rows = [
            sketches.IntervalRow(name, float(e), floor=(float(a), float(b)), marked=bool(out))
            for name, e, a, b, out in ends
        ]
        drawing = sketches.forest(rows, "ECE, grey: noise band")
        return replace(super()._card(), numbers=numbers, drawing=drawing)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        return rendering.columns_of_arrays(self._tables()[0])


@dataclass(frozen=True, eq=False)
class BandTest(Result):
    """Result of :meth:`ReliabilityFit.band_test`.

    Attributes
    ----------
    at_least : float
        Lower confidence bound of the largest absolute difference of observed and predicted, in
        [0, 1]; 0 if none is shown.
    at_most : float
        Upper confidence bound of it, the smallest tolerance that is met; NaN if the band crosses.
    crosses : bool
        Whether the band crosses itself: no increasing curve fits, which also refutes calibration.
    tolerance : float
        Tolerance that was asked for, in [0, 1).
    between : tuple of float
        Smallest and largest prediction that was examined.
    lens : str
        The lens, written as in Python.
    level : float
        Confidence level, in (0, 1).
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    at_least: float
    at_most: float
    crosses: bool
    tolerance: float
    between: tuple[float, float]
    lens: str
    level: float
    title: ClassVar[str] = "Test by the confidence band"
    number: ClassVar[str] = "at_most"

    @property
    def verdict(self) -> AuditVerdict:
        """Verdict on whether the curve deviates by more than ``tolerance``.

        It is "miscalibrated, and it matters", "miscalibrated, but too little to matter",
        "calibrated to within the tolerance" or "cannot tell".
        """
        if self.at_least > self.tolerance:
            return AuditVerdict.MATTERS
        if not self.at_most <= self.tolerance:
            return AuditVerdict.CANNOT_TELL
        verdicts = AuditVerdict.TOO_LITTLE_TO_MATTER, AuditVerdict.WITHIN_TOLERANCE
        return verdicts[self.at_least == 0.0]

    def _procedure(self) -> list[str]:
        low, high = self.between
        return [f"confidence band between {low:g} and {high:g}", self.lens, self._percent]

    def _card(self) -> Card:
        tones: dict[AuditVerdict, Tone] = {
            AuditVerdict.MATTERS: "bad",
            AuditVerdict.CANNOT_TELL: "ask",
        }
        numbers = (
            ("somewhere wrong by", f"{self.at_least:.3g}", "at least"),
            ("nowhere wrong by", f"{self.at_most:.3g}", "more than this"),
            ("tolerance", f"{self.tolerance:g}", f"predictions from {self.between[0]:g} to "
             f"{self.between[1]:g}"),
        )  # fmt: skip
        tone = tones.get(self.verdict, "good")
        return replace(super()._card(), verdict=str(self.verdict), tone=tone, numbers=numbers)

    def _in_words(self) -> list[str]:
        if self.crosses:
            return ["The band crosses itself: the outcome does not increase with the prediction."]
        ends = " to ".join(f"{round(100 * end, 4):.3g} %" for end in self.between)
        most = f"{100 * self.at_most:.2g}"
        if self.at_least >= 0.0005:
            most += f", and some are wrong by at least {100 * self.at_least:.2g}"
        beside = (
            f" With a tolerance of {self.tolerance:g}: {self.verdict}." if self.tolerance else ""
        )
        return [
            f"No prediction from {ends} is wrong by more than {most} percentage points "
            f"({self._percent} band, for any increasing curve).{beside}"
        ]


@dataclass(frozen=True, eq=False)
class ReliabilityFit(Result):
    """Result of :func:`caltest.reliability_fit`: a reliability curve without bins.

    Attributes
    ----------
    predicted : ndarray of shape (m,)
        Predictions in increasing order, in [0, 1].
    fitted : ndarray of shape (m,)
        Estimated event rate at these predictions.
    low, high : ndarray of shape (m,)
        The band; NaN without one. With ``fit="band"``, ``low`` of the left neighbour and ``high``
        of the right one hold between two predictions.
    spread : ndarray of shape (B,), int
        Histogram of the predictions in B fine bins, whose edges are the multiples of 0.05 and every
        half unit of log-odds from −14 to 14.
    name : str
        The event.
    subject : str
        "event", or "top" for the top class.
    fit : {"isotonic", "smooth", "band", "lowess"}
        Kind of curve.
    band : {"consistency", "confidence", "none"}
        Consistency bands hold the curve under calibration, confidence bands the true curve.
    lens : str
        The lens, written as in Python.
    level : float
        Level of the band, in (0, 1).
    simultaneous : bool
        Whether the level holds at all predictions together.
    test : CalibrationTestResult or None
        Test of the error that belongs to the curve.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        replicates for the band, 0 without one.
    """

    predicted: FloatArray
    fitted: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    name: str
    subject: str
    fit: str
    band: str
    lens: str
    level: float
    simultaneous: bool
    test: CalibrationTestResult | None
    title: ClassVar[str] = "Reliability curve without bins"
    plotter: ClassVar[str] = "lines.fitted"

    @property
    def deviation(self) -> FloatArray:
        """Observed − predicted at each prediction of the curve, (m,).

        It is the fitted event rate less the prediction: above 0 the model underestimates.
        """
        return self.fitted - self.predicted

    @property
    def crosses(self) -> bool:
        """True if the band crosses itself: its lower limit lies above its upper limit somewhere.

        No increasing curve fits between the limits, so that the true curve is not increasing.
        """
        return bool((self.low > self.high).any())

    def band_test(self, tolerance: float = 0.0, between: tuple[float, float] = (0, 1)) -> BandTest:
        """Return which errors the band proves: none above a tolerance, or at least one.

        Both claims hold together, for every tolerance and all predictions at once, with probability
        ``level`` if the true curve is increasing. O(m) for m predictions.

        Parameters
        ----------
        tolerance : float, default 0
            A distance of outcome and prediction that does not matter, in [0, 1).
        between : tuple of float, default (0, 1)
            Range of predictions to judge. The band is wide where rows are few, as at its ends.

        Returns
        -------
        BandTest
            Bounds ``at_least`` and ``at_most`` of the largest error, and the verdict at the
            tolerance.

        Raises
        ------
        StatisticError
            Without a confidence band (``fit="band"``), and without predictions in the range.

        Examples
        --------
        >>> import caltest as ct
        >>> data = ct.examples.GaussianMixture().sample(100_000, rng=1)
        >>> band = ct.reliability_fit(data, fit="band")
        >>> answer = band.band_test(tolerance=0.1, between=(0.1, 0.9))
        >>> answer.at_least, round(answer.at_most, 3), answer.verdict
        (0.0, 0.095, 'calibrated to within the tolerance')
        """
        number("tolerance", tolerance, 0.0, 1.0, "[)")
        if self.band != "confidence":
            raise StatisticError("a test of the size of an error needs fit='band'")
        x = self.predicted
        within = (x >= between[0]) & (x <= between[1])
        if not within.any():
            raise StatisticError(f"there are no predictions between {between[0]} and {between[1]}")
        over, under = self.low[within] - x[within], x[within] - self.high[within]
        far = float(np.maximum(-over, -under).max())
        return BandTest(
            at_least=float(max(0.0, over.max(), under.max())),
            at_most=float("nan") if self.crosses else far,
            crosses=self.crosses,
            tolerance=tolerance,
            between=(float(between[0]), float(between[1])),
            level=self.level,
            lens=self.lens,
            n=self.n,
            n_classes=self.n_classes,
            event_name=self.event_name,
            notes=self.notes,
            copies=self.copies,
        )

    def _tables(self) -> list[Columns]:
        rows = np.unique(np.linspace(0, self.predicted.size - 1, 15).astype(int))
        names = ("predicted", "fitted")
        band = {"band low": self.low[rows], "band high": self.high[rows]}
        return [{name: vars(self)[name][rows] for name in names} | band]

    def _card(self) -> Card:
        far = int(np.nanargmax(np.abs(self.deviation)))
        numbers = [
            (
                "largest deviation",
                f"{self.deviation[far]:+.3f}",
                f"observed − predicted, at a prediction of {self.predicted[far]:.3g}",
            ),
            ("observations", str(self.n), self.lens),
        ]
        if self.test is not None:
            floor = f"noise floor {self.test.shown_floor}, {p_is(self.test.shown_p)}"
            numbers.insert(0, (short(self.test.statistic), self.test.shown_estimate, floor))
        axes = sketches.axes_of(self.subject, self.event_name)
        band = None if self.band == "none" else (self.low, self.high)
        drawing = sketches.line(self.predicted, self.fitted, axes, band=band, square=True)
        return replace(super()._card(), numbers=tuple(numbers), drawing=drawing)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        names = ("predicted", "fitted", "deviation", "low", "high")
        return rendering.columns_of_arrays({name: getattr(self, name) for name in names})

    def _procedure(self) -> list[str]:
        how = "simultaneous " if self.simultaneous else ""
        band = "no band" if self.band == "none" else f"{self._percent} {how}{self.band} band"
        return [f"{'isotonic' if self.fit == 'band' else self.fit} curve", self.lens, band]


# ------------------------------------------------------------------------------
# The answers of a reliability curve, and of a diagram on the simplex.


#: Bands that hold where the truth may be; all others hold what a calibrated model would show.
CONFIDENCE_BARS = ("clopper-pearson", "wilson")


#: Edges of histograms of the predictions: every 0.05, every half unit of log-odds, and all.
SHARE_EDGES: FloatArray = np.arange(21) / 20


LOGIT_EDGES: FloatArray = np.concatenate(
    [[0.0], 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, 57))), [1.0]]
)


SPREAD_EDGES: FloatArray = np.unique(np.concatenate([SHARE_EDGES, LOGIT_EDGES]))


#: The columns of the table, with one entry a bin.
CURVE_COLUMNS = (
    *("component", "cell", "bin_low", "bin_high", "count"),
    *("predicted", "observed", "low", "high"),
)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """Result of :func:`caltest.reliability_curve`: a table with one row an occupied bin.

    Attributes
    ----------
    component : ndarray of shape (L,), int
        Class of the lens: 0 for a binary lens, else 0 … K'−1. Subgroups follow one another.
    cell : ndarray of shape (L,), int
        Bin number, as the binning counts.
    bin_low, bin_high : ndarray of shape (L,)
        Edges of ``UniformBins`` and ``EdgeBins``; for other bins the smallest and largest
        prediction.
    count : ndarray of shape (L,), int
        Number of rows in the bin; empty bins are left out.
    predicted, observed : ndarray of shape (L,)
        Mean prediction and observed event rate, in [0, 1]; ``predicted`` increases.
    low, high : ndarray of shape (L,)
        Consistency or confidence bars of event rates; NaN without bars.
    spread : ndarray of shape (J, B), int
        Histogram of the predictions of each of J components in B fine bins, whose edges are the
        multiples of 0.05 and every half unit of log-odds from −14 to 14.
    names : tuple of str
        Names of the components.
    subject : {"event", "top", "ranks", "classes", "vector"}
        Which probabilities the lens assesses.
    lens, bins : str
        Lens and binning, written as in Python.
    band : str
        Method of the bars; "none" without bars.
    level : float
        Level of the bars, in (0, 1).
    simultaneous : bool
        Whether the level holds for all bars together.
    tests : tuple of CalibrationTestResult
        Test of the ECE of every component.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`; ``n_resamples`` counts
        replicates for the bars, 0 where they are computed exactly.
    """

    component: IntArray
    cell: IntArray
    bin_low: FloatArray
    bin_high: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    spread: IntArray
    names: tuple[str, ...]
    subject: str
    lens: str
    bins: str
    band: str
    level: float
    simultaneous: bool
    tests: tuple[CalibrationTestResult, ...]
    title: ClassVar[str] = "Reliability curve"
    plotter: ClassVar[str] = "panels.reliability"

    @property
    def deviation(self) -> FloatArray:
        """Observed − predicted of each of L bins, (L,): above 0 the model underestimates."""
        return self.observed - self.predicted

    @property
    def outside(self) -> BoolArray:
        """True for bins outside their bar, booleans (L,) for L bins.

        A consistency bar should contain the observed frequency, a confidence bar the prediction.
        """
        value = self.observed if self.is_consistency else self.predicted
        return (value < self.low - 1e-12) | (value > self.high + 1e-12)

    @property
    def is_consistency(self) -> bool:
        """True for consistency bars (null quantiles); False for confidence bars."""
        return self.band not in CONFIDENCE_BARS

    def of(self, component: int) -> ReliabilityCurve:
        """Return the curve of one component (class or subgroup) alone.

        ``component`` is its number in ``names``.
        """
        rows = self.component == component
        return replace(
            self,
            **{name: vars(self)[name][rows] for name in CURVE_COLUMNS},
            spread=self.spread[[component]],
            names=(self.names[component],),
            tests=self.tests[component : component + 1],
        )

    @property
    def shown_band(self) -> str:
        """Name of the bars for a caption."""
        kind = "consistency" if self.is_consistency else "confidence"
        words = f"{'simultaneous ' * self.simultaneous}{kind} bars ({self.band})"
        return "no bars" if self.band == "none" else f"{self._percent} {words}"

    def _procedure(self) -> list[str]:
        return [self.bins, self.lens, self.shown_band]

    def _tables(self) -> list[Columns]:
        of = {"of": [self.names[j] for j in self.component]} if len(self.names) > 1 else {}
        # Bars of clusters are normal, and may leave [0, 1], the range of a frequency.
        ends = (("bar low", self.low), ("bar high", self.high))
        bars = {name: np.clip(values, 0.0, 1.0) for name, values in ends}
        columns = {name: vars(self)[name] for name in CURVE_COLUMNS[2:7]}
        return [{**of, **columns, "deviation": self.deviation, **bars, "outside": self.outside}]

    def _card(self) -> Card:
        outside, tests = self.outside, self.tests
        worst = min(range(len(tests)), key=lambda j: tests[j].pvalue) if tests else 0
        numbers = [
            ("bins outside", f"{int(outside.sum())} of {outside.size}", f"their {self.shown_band}"),
            ("observations", str(self.n), self.lens),
        ]
        if tests:
            floor = f"noise floor {tests[worst].shown_floor}, {p_is(tests[worst].shown_p)}"
            of = f" of {self.names[worst]}" if len(self.names) > 1 else ""
            numbers.insert(0, (f"ECE{of}", tests[worst].shown_estimate, floor))
        part = self if len(self.names) == 1 else self.of(worst)
        drawn = sketches.diagram(
            *(part.predicted, part.observed, (part.low, part.high)),
            *(part.outside.tolist(), part.count.tolist()),
            sketches.axes_of(part.subject, part.event_name),
        )
        shown = (f"The picture shows {self.names[worst]}.",) if len(self.names) > 1 else ()
        return replace(super()._card(), numbers=tuple(numbers), remarks=shown, drawing=drawn)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        of = {"name": [self.names[j] for j in self.component]}
        columns = {name: vars(self)[name] for name in CURVE_COLUMNS}
        found = {"deviation": self.deviation, "outside": self.outside}
        return rendering.columns_of_arrays({**of, **columns, **found})


@dataclass(frozen=True, eq=False)
class ReliabilitySimplex(Result):
    """Result of :func:`caltest.reliability_simplex`: a table with one row an occupied cell.

    Attributes
    ----------
    bin_low, bin_high : ndarray of shape (L, K)
        The cell, bin_low ≤ p ≤ bin_high: slices of ``SimplexGrid``, else the range of predictions.
    count : ndarray of shape (L,), int
        Number of rows in the cell; empty cells are left out.
    predicted, observed : ndarray of shape (L, K)
        Mean prediction and observed class frequencies, weighted; every row sums to 1.
    pvalue : ndarray of shape (L,)
        p-value of each cell: exact, or simulated where ``n_resamples`` is not 0.
    adjusted : ndarray of shape (L,)
        p-values adjusted over cells: by Holm if exact, by max-T if simulated.
    names : tuple of str
        Names of the K corners.
    lens, bins : str
        Lens and binning, written as in Python.
    level : float
        1 − the familywise level at which cells are ``significant``.
    test : CalibrationTestResult
        Test of the ECE over the cells.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    bin_low: FloatArray
    bin_high: FloatArray
    count: IntArray
    predicted: FloatArray
    observed: FloatArray
    pvalue: FloatArray
    adjusted: FloatArray
    names: tuple[str, ...]
    lens: str
    bins: str
    level: float
    test: CalibrationTestResult
    title: ClassVar[str] = "Reliability on the simplex"
    plotter: ClassVar[str] = "panels.simplex"

    @property
    def deviation(self) -> FloatArray:
        """Observed − predicted of K classes in L cells, shape (L, K).

        It is class frequencies less mean predictions; every row sums to 0.
        """
        return self.observed - self.predicted

    @property
    def significant(self) -> BoolArray:
        """True for cells whose adjusted p-value is at most 1 − level, booleans (L,) for L cells."""
        return self.adjusted <= 1.0 - self.level + 1e-12

    def _procedure(self) -> list[str]:
        return [self.bins, self.lens, f"cells marked at family level {1.0 - self.level:.3g}"]

    def _tables(self) -> list[Columns]:
        corners = f"({', '.join(self.names)})"
        means = {f"predicted {corners}": self.predicted, f"observed {corners}": self.observed}
        return [{"count": self.count, **means, "pvalue": self.pvalue, "adjusted": self.adjusted}]

    def _card(self) -> Card:
        found, test = self.significant, self.test
        numbers = (
            (
                "cells that deviate",
                f"{int(found.sum())} of {found.size}",
                f"family level {1.0 - self.level:.3g}",
            ),
            ("ECE", test.shown_estimate, f"noise floor {test.shown_floor}, {p_is(test.shown_p)}"),
            ("observations", str(self.n), self.lens),
        )
        return replace(super()._card(), numbers=numbers)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        vectors = ("bin_low", "bin_high", "predicted", "observed", "deviation")
        columns: dict[str, AnyArray] = {"count": self.count}
        for name in vectors:
            values = getattr(self, name)
            columns |= {f"{name}_{corner}": values[:, j] for j, corner in enumerate(self.names)}
        tested = {name: getattr(self, name) for name in ("pvalue", "adjusted", "significant")}
        return rendering.columns_of_arrays({**columns, **tested})
