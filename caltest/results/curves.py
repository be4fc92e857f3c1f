"""Answers that are curves: of two models, of numbers of bins, and without bins."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.checks import number
from caltest.errors import StatisticError
from caltest.results.base import Result, short
from caltest.results.calibration import CalibrationTestResult
from caltest.results.fields import described, entry
from caltest.results.tables import Columns
from caltest.results.verdicts import AuditVerdict


@described(
    eq=False,
    shape="(L,)",
    columns="predicted count_a count_b difference low high",
    title="Difference of two reliability curves",
    plotter="reliability.difference",
)
class ReliabilityDifference(Result):
    """The answer of :func:`caltest.reliability_difference`: one row a bin that both models use."""

    predicted: FloatArray = entry("Mean prediction of both models in the bin; increasing.")
    difference: FloatArray = entry("Outcome − prediction of model a minus that of model b.")
    low: FloatArray = entry("The confidence band of the difference.")
    high: FloatArray
    count_a: IntArray = entry("Rows of the two models in the bin.")
    count_b: IntArray
    cell: IntArray = entry("Numbers of the bins, for which neighbours follow each other.")
    names: tuple[str, str] = entry("The two models.")
    name: str = entry('The event; ``subject`` is ``"top"`` for the top class.')
    subject: str
    lens: str = entry("The recipe.")
    bins: str
    level: float
    simultaneous: bool

    def _procedure(self) -> list[str]:
        band = f"{'simultaneous ' * self.simultaneous}confidence band of the difference"
        return [self.bins, self.lens, f"{self._percent} {band}"]

    def _in_words(self) -> list[str]:
        return [f"Deviation of {self.names[0]} minus that of {self.names[1]}."]


@described(
    eq=False,
    shape="(M,)",
    columns="bins size estimate null_mean low high pvalue",
    title="Sensitivity to the bins",
    plotter="curves.sensitivity",
)
class BinSensitivity(Result):
    """The answer of :func:`caltest.bin_sensitivity`: one row a binning."""

    bins: tuple[str, ...] = entry("The binnings.")
    size: IntArray = entry("Their numbers of bins: as asked for, or of occupied cells.")
    estimate: FloatArray = entry("The ECE, its noise floor, the band of its null, and its p-value.")
    null_mean: FloatArray
    low: FloatArray
    high: FloatArray
    pvalue: FloatArray
    lens: str = entry("The recipe.")
    distance: str
    level: float

    def _procedure(self) -> list[str]:
        kinds = " / ".join(dict.fromkeys(map(short, self.bins)))
        ece = f"ECE({kinds}, distance={self.distance})"
        return [ece, self.lens, f"{self._percent} noise band"]


@described(
    number="at_most",
    title="Test by the confidence band",
    procedure="confidence band between {0.between[0]:g} and {0.between[1]:g} · {0.lens} · "
    "{0._percent}",
)
class BandTest(Result):
    """The answer of :meth:`ReliabilityFit.band_test`."""

    at_least: float = entry("So far apart are outcome and prediction somewhere, 0 if unknown.")
    at_most: float = entry("And nowhere further: the smallest tolerance; NaN if the band crosses.")
    crosses: bool = entry("Whether the curve is not increasing, which refutes calibration, too.")
    tolerance: float = entry("What was asked.", "float, tuple of float")
    between: tuple[float, float]
    lens: str = entry("The recipe.")
    level: float

    @property
    def verdict(self) -> AuditVerdict:
        """What follows for a tolerance of ``tolerance``."""
        if self.at_least > self.tolerance:
            return AuditVerdict.MATTERS
        if not self.at_most <= self.tolerance:
            return AuditVerdict.CANNOT_TELL
        verdicts = AuditVerdict.TOO_LITTLE_TO_MATTER, AuditVerdict.WITHIN_TOLERANCE
        return verdicts[self.at_least == 0.0]

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
            f"Of the predictions from {ends} none is wrong by more than {most} percentage points "
            f"({self._percent} band, for any increasing curve).{beside}"
        ]


@described(
    eq=False,
    shape="(m,)",
    title="Reliability curve without bins",
    plotter="curves.fitted",
    draws="replicates for the band, 0 for none",
)
class ReliabilityFit(Result):
    """The answer of :func:`caltest.reliability_fit`: a curve without bins."""

    predicted: FloatArray = entry("Predictions, increasing, and the estimated frequency there.")
    fitted: FloatArray
    low: FloatArray = entry('NaN without a band; of fit="band" ``low`` of the left neighbour and '
                            "``high`` of the right one hold between them.")  # fmt: skip
    high: FloatArray
    spread: IntArray = entry("Histogram.", "ndarray of shape (len(SPREAD_EDGES) − 1,), int")
    name: str = entry('The event; ``subject`` is ``"top"`` for the top class.')
    subject: str
    fit: str = entry("The kind of curve.", '{"isotonic", "smooth", "band", "lowess"}')
    band: str = entry("If calibrated, or of the truth.", '{"consistency", "confidence", "none"}')
    lens: str = entry("The recipe.")
    level: float
    simultaneous: bool
    test: CalibrationTestResult | None = entry("The test of the error that belongs to the curve.")

    @property
    def deviation(self) -> FloatArray:
        """Outcome minus prediction: above 0 the model underestimates."""
        return self.fitted - self.predicted

    @property
    def crosses(self) -> bool:
        """Whether the band crosses itself: no increasing curve is within, the true one is none."""
        return bool((self.low > self.high).any())

    def band_test(self, tolerance: float = 0.0, between: tuple[float, float] = (0, 1)) -> BandTest:
        """Say what the band proves of the error: that it matters nowhere, or does somewhere.

        Both claims hold together, for every tolerance and all predictions at once, with probability
        ``level`` if the true curve is increasing. O(N). StatisticError without a confidence band or
        without predictions.

        Parameters
        ----------
        tolerance : float, default 0
            A distance of outcome and prediction that does not matter.
        between : tuple of float, default (0, 1)
            The predictions that are looked at. The band is wide where rows are few, as at its ends.

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
            notes=self.notes,
            copies=self.copies,
        )

    def _tables(self) -> list[Columns]:
        rows = np.unique(np.linspace(0, self.predicted.size - 1, 15).astype(int))
        names = ("predicted", "fitted", "low", "high")
        return [{name: vars(self)[name][rows] for name in names}]

    def _procedure(self) -> list[str]:
        how = "simultaneous " if self.simultaneous else ""
        band = "no band" if self.band == "none" else f"{self._percent} {how}{self.band} band"
        return [f"{'isotonic' if self.fit == 'band' else self.fit} curve", self.lens, band]
