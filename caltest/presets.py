"""Recipes that reproduce the number of another paper or package.

Each function returns a :class:`Preset`, a statistic and a lens with their source. It is called for
the number, and unpacked into any verb for the test, the interval or the comparison that the other
program lacks: ``calibration_test(probs, labels, **presets.guo2017())``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import MOST_BINS, whole
from caltest.data import Facts
from caltest.data.binning import (
    Binning,
    Closed,
    CutBins,
    EdgeBins,
    UniformBins,
    VarianceTree,
    one_coordinate,
)
from caltest.data.lenses import Canonical, Lens, OneVsRest, TopK
from caltest.errors import StatisticError
from caltest.read.arguments import read_arguments
from caltest.statistics import (
    ACE,
    ECE,
    MCE,
    RMSCE,
    SCE,
    TACE,
    Cells,
    ClasswiseECE,
    DebiasedL2,
    HosmerLemeshow,
    Problem,
    RowProblem,
    Statistic,  # fmt: skip
)
from caltest.statistics.prepared import CellStatistic, LabelStatistic, Prepared, rows_of
from caltest.statistics.regression import ScaledGaps
from caltest.statistics.smooth import RelplotSmoothECE

ClassificationTask = Literal["multiclass", "binary"]
Reduction = Literal["expected", "maximum"]
BinnedStatistic = type[ECE] | type[MCE] | type[HosmerLemeshow]
_Choice = TypeVar("_Choice")


@dataclass(frozen=True)
class Preset:
    """A statistic and a lens that together reproduce a published number; ``**preset`` passes both.

    Call it with probabilities and labels for the number, or pass ``**preset`` to functions such as
    :func:`calibration_test`, as ``statistic`` and ``lens``, the choice of assessed probabilities.
    ``source`` is a paper, or a program with its version; with ``root`` the number is √max(T, 0) of
    the statistic T, which these functions see.
    """

    statistic: Statistic
    lens: Lens
    source: str
    root: bool = False

    def __call__(self, probs: object, labels: object = None, **facts: Unpack[Facts]) -> float:
        """Return the published number, a float, for predictions and labels.

        ``probs``, ``labels`` and ``facts`` (``weights``, ``from_logits`` and others) are the
        arguments of :meth:`Predictions.of`, which raises the errors.
        """
        facts.setdefault("rounded", False)  # the value of all rows
        value = self.statistic(self.lens(read_arguments(probs, labels, **facts)))
        return max(value, 0.0) ** 0.5 if self.root else value

    def keys(self) -> tuple[str, str]:
        return ("statistic", "lens")

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, key: str) -> object:
        return {"statistic": self.statistic, "lens": self.lens}[key]


def _chosen(name: str, value: str, choices: dict[str, _Choice]) -> _Choice:
    if value not in choices:
        raise StatisticError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return choices[value]


def _top_or_event(task: str) -> Lens:
    return _chosen("task", task, {"multiclass": TopK(1), "binary": OneVsRest(1)})


def _even(bins: int, closed: Closed = "right", top: float = 1.0, least: int = 1) -> EdgeBins:
    """Return bins with exactly the edges of ``linspace(0, top, bins + 1)``, as in other programs.

    ``bins`` is their number, ``closed`` the side on which they are closed, "left" or "right",
    ``least`` the smallest number allowed; StatisticError for others.
    """
    whole("bins", bins, least, most=MOST_BINS)
    return EdgeBins(np.linspace(0.0, top, bins + 1)[1:-1], closed=closed)


def guo2017(bins: int = 15) -> Preset:
    """Return the ECE of Guo et al. (2017): the confidence of the top class, (a, b] bins.

    ``bins`` is the number of bins of equal width. The :class:`Preset`, a statistic with its lens,
    is called with probabilities and labels.
    """
    return Preset(ECE(UniformBins(bins)), TopK(1), "Guo et al. (2017), Eq. 3")


def nixon2019(
    metric: Literal["sce", "ace", "tace"] = "ace", bins: int = 15, *, threshold: float = 0.01,
    variant: Literal["paper", "nixon"] = "paper",
) -> Preset:  # fmt: skip
    """Return the static, adaptive or thresholded adaptive error of Nixon et al. (2019).

    ``variant="nixon"`` is the authors' code: its bins are [a, b), with p = 1 in one of its own; its
    m ranges start at ranks round(j n_k / m) of the n_k predictions of class k above the threshold,
    and count by their share of them. ``bins`` is the number of bins or ranges, ``threshold`` the
    smallest probability that "tace" counts. The :class:`Preset`, a statistic with its lens, is
    called with probabilities and labels. StatisticError for another ``metric`` or ``variant``.
    """
    ranges = CutBins(bins, "rank", "left")
    even = EdgeBins(np.linspace(0.0, 1.0, bins + 1)[1:], closed="left")
    paper: dict[str, Statistic] = {"sce": SCE(bins), "ace": ACE(bins)}
    paper["tace"] = TACE(bins, threshold=threshold)
    nixon: dict[str, Statistic] = {"sce": ClasswiseECE(even), "ace": ClasswiseECE(ranges)}
    nixon["tace"] = ClasswiseECE(ranges, threshold=threshold)
    variants: dict[str, dict[str, Statistic]] = {"paper": paper, "nixon": nixon}
    chosen = _chosen("metric", metric, _chosen("variant", variant, variants))
    return Preset(chosen, Canonical(), "Nixon et al. (2019), §4")


def calzone(
    metric: Literal["ece-h", "ece-c", "mce-h", "mce-c", "hl-h", "hl-c"] = "ece-h", bins: int = 10,
    *, class_index: int | None = 1,
) -> Preset:  # fmt: skip
    """Return an error of calzone 0.1: bins of equal width (h) or of equal count (c).

    ``metric`` is an ECE, an MCE or a Hosmer–Lemeshow statistic over ``bins`` bins. The first
    equal-count bin leaves out its lower end: rows with the smallest prediction are in none.
    ``class_index`` is the class whose probability is assessed, None the top class. The
    :class:`Preset`, a statistic with its lens, is called with probabilities and labels.
    StatisticError for another metric.
    """
    whole("bins", bins, most=MOST_BINS)
    kinds: dict[str, BinnedStatistic] = {"ece": ECE, "mce": MCE, "hl": HosmerLemeshow}
    statistics: dict[str, Statistic] = {
        f"{name}-{cut}": kind(UniformBins(bins)) if cut == "h" else _WithoutSmallest(kind, bins)
        for cut in "hc"
        for name, kind in kinds.items()
    }
    lens: Lens = TopK(1) if class_index is None else OneVsRest(class_index)
    return Preset(_chosen("metric", metric, statistics), lens, "calzone 0.1")


def sklearn(
    bins: int = 5, *, strategy: Literal["uniform", "quantile"] = "uniform", class_index: int = 1
) -> Preset:
    """Return the binned error of the curve that scikit-learn's ``calibration_curve`` draws.

    It is the ECE over the bins of that curve. ``bins`` and ``strategy`` ("uniform" width or
    "quantile") are as there; ``class_index`` is the class whose probability is assessed. The
    :class:`Preset`, a statistic with its lens, is called with probabilities and labels.
    """
    errors = {"uniform": ECE(_even(bins)), "quantile": ECE(CutBins(bins))}
    return Preset(
        _chosen("strategy", strategy, errors),
        OneVsRest(class_index),
        "scikit-learn 1.9, calibration_curve",
    )


def torchmetrics(
    norm: Literal["l1", "l2", "max"] = "l1",
    bins: int = 15,
    *,
    task: ClassificationTask = "multiclass",
) -> Preset:
    """Return the calibration error of torchmetrics 1.9: [a, b) bins, and 1 in a bin of its own.

    torchmetrics is right to about 1e-6 for several classes, in single precision. ``norm`` "l1" is
    the mean, "l2" the root mean square and "max" the largest gap over ``bins`` bins; ``task``
    assesses the top class for "multiclass", the probability of class 1 for "binary". The
    :class:`Preset`, a statistic with its lens, is called with probabilities and labels.
    """
    whole("bins", bins, most=MOST_BINS)
    edges = EdgeBins(np.arange(1, bins + 1) / bins, closed="left")
    error = _chosen("norm", norm, {"l1": ECE, "l2": RMSCE, "max": MCE})
    return Preset(error(edges), _top_or_event(task), "torchmetrics 1.9, calibration_error")


def netcal(
    metric: Literal["ece", "mce"] = "ece", bins: int = 10, *, equal_intervals: bool = True,
    task: ClassificationTask = "multiclass",
) -> Preset:  # fmt: skip
    """Return the ECE or MCE of netcal 1.4: [a, b) bins, the last one closed.

    ``bins`` is their number; ``equal_intervals`` False takes bins of equal mass. netcal reads an
    array of two columns, like one of one dimension, as the probability of class 1: take
    ``task="binary"`` for it. ``task`` assesses the top class for "multiclass", the probability of
    class 1 for "binary". The :class:`Preset`, a statistic with its lens, is called with
    probabilities and labels.
    """
    edges = _even(bins, "left") if equal_intervals else CutBins(bins, closed="left")
    error = _chosen("metric", metric, {"ece": ECE, "mce": MCE})
    return Preset(error(edges), _top_or_event(task), "netcal 1.4")


def verified_calibration(
    metric: Literal["ece", "ece-em", "l2"] = "ece",
    bins: int = 15,
    *,
    task: ClassificationTask = "multiclass",
) -> Preset:
    """Return an error of uncertainty-calibration 0.1.4 (Kumar et al. 2019), with ``bins`` bins.

    ``metric`` "ece" is ``get_ece``, "ece-em" ``get_ece_em`` (equal-mass bins, cut half-way between
    neighbours), and "l2" ``get_calibration_error(mode="top-label")``, the root of the debiased
    squared error over these. ``task`` assesses the top class for "multiclass", the probability of
    class 1 for "binary". The :class:`Preset`, a statistic with its lens, is called with
    probabilities and labels.
    """
    mass = CutBins(bins, "halfway")
    even = EdgeBins(np.arange(1, bins) / bins)
    root = DebiasedL2(mass, estimator="kumar")
    chosen = _chosen("metric", metric, {"ece": ECE(even), "ece-em": ECE(mass), "l2": root})
    source = "uncertainty-calibration 0.1.4 (Kumar et al. 2019)"
    return Preset(chosen, _top_or_event(task), source, root=metric == "l2")


def helm(*, task: ClassificationTask = "multiclass") -> Preset:
    """Return ``ece_10_bin`` of HELM, which is :func:`verified_calibration` ``("ece-em", 10)``.

    It is the ECE over ten bins of equal mass. ``task`` assesses the top class for "multiclass", the
    probability of class 1 for "binary". The :class:`Preset`, a statistic with its lens, is called
    with probabilities and labels.
    """
    return Preset(ECE(CutBins(10, "halfway")), _top_or_event(task), "HELM, ece_10_bin")


def hle(bin_size: int = 100, *, task: ClassificationTask = "binary") -> Preset:
    """Return the RMS calibration error of Humanity's Last Exam, of stated confidences.

    Confidences are sorted and cut into bins of ``bin_size`` rows; the last one, with the remainder,
    does not count: up to 199 of the surest answers. Equal confidences are cut apart by their order
    in the file. ``RMSCE`` has neither fault. ``task`` assesses the top class for "multiclass", the
    probability of class 1 for "binary". The :class:`Preset`, a statistic with its lens, is called
    with probabilities and labels; StatisticError for fewer rows than two bins.
    """
    whole("bin_size", bin_size)
    return Preset(_WithoutLast(bin_size), _top_or_event(task), "Humanity's Last Exam", root=True)


def monai(
    metric: Reduction = "expected", bins: int = 20, *, class_index: int | None = None
) -> Preset:
    """Return the calibration error of MONAI 1.6: the classes are its channels, rows its voxels.

    It is the mean over classes, unless ``class_index`` picks one. Its ``bins`` bins are (a, b], its
    precision is single. ``metric`` is "expected" for the average gap of the bins, "maximum" for the
    largest, which needs a ``class_index``; StatisticError else. The :class:`Preset`, a statistic
    with its lens, is called with probabilities and labels.
    """
    edges = _even(bins, top=1.0 + float(np.finfo(np.float32).eps), least=2)
    errors: dict[str, Statistic] = {"expected": ClasswiseECE(edges)}
    lens: Lens = Canonical()
    if class_index is not None:
        errors, lens = {"expected": ECE(edges), "maximum": MCE(edges)}, OneVsRest(class_index)
    return Preset(_chosen("metric", metric, errors), lens, "MONAI 1.6, CalibrationErrorMetric")


def relplot(*, task: ClassificationTask = "multiclass") -> Preset:
    """Return the smooth ECE of relplot 1.0 (Błasiok & Nakkiran 2023).

    :class:`SmoothECE` is the formula of the paper, which the package rounds: predictions of exactly
    0 or 1 count half, as they are not reflected, and those nearer than 0.001 in part, which moved
    the number by up to a fifth; the width σ is the smallest multiple of 2^−10 that the error does
    not exceed, and the number is the error there, below the width (8 % of it at n = 200 000); the
    integral is a sum of max(200, 10 / σ) points; data are split between two neighbours on a grid of
    max(2000, 20 / σ) / 2 + 1 points; the kernel ends at a distance of ½; and 10^−4 is added to the
    density. ``task`` assesses the top class for "multiclass", the probability of class 1 for
    "binary". The :class:`Preset`, a statistic with its lens, is called with probabilities and
    labels.
    """
    return Preset(RelplotSmoothECE(), _top_or_event(task), "relplot 1.0 (Błasiok & Nakkiran 2023)")


def calibrationerrors_jl(
    binning: Literal["uniform", "median-variance"] = "uniform", bins: int = 10, *,
    min_size: int = 10, distance: str = "tv",
) -> Preset:  # fmt: skip
    """Return the ECE of CalibrationErrors.jl (Widmann et al. 2019), of the whole vector.

    ``binning`` "uniform" has ``bins`` slices along each axis, "median-variance" is a
    :class:`VarianceTree` with cells of at least ``min_size`` rows. ``distance`` is as for
    :class:`ECE`. The :class:`Preset`, a statistic with its lens, is called with probabilities and
    labels.
    """
    partitions: dict[str, Binning] = {"uniform": UniformBins(bins)}
    partitions["median-variance"] = VarianceTree(min_size)
    statistic = ECE(_chosen("binning", binning, partitions), distance=distance)
    return Preset(statistic, Canonical(), "CalibrationErrors.jl (Widmann et al. 2019)")


@dataclass(frozen=True, repr=False)
class _WithoutSmallest(Statistic):
    """A binned error over quantile bins (a, b], which leave out rows with the smallest prediction.

    ``make`` is the class of the error, :class:`ECE`, :class:`MCE` or :class:`HosmerLemeshow`;
    ``n_bins`` is the number of bins.
    """

    make: BinnedStatistic
    n_bins: int

    def prepare(self, problem: Problem) -> _KeptRows:
        data = rows_of(problem, self)
        x = one_coordinate(data.probs, self)
        edges = np.unique(np.quantile(x, np.linspace(0.0, 1.0, self.n_bins + 1))[1:-1])
        members = np.flatnonzero(x > x.min())
        inner = self.make(EdgeBins(edges)).prepare(RowProblem(data.take(members)))
        return _KeptRows(problem, inner, members, laws=inner.laws)

    def __repr__(self) -> str:
        return f"{self.make.__name__}(quantiles without the smallest, {self.n_bins})"


@dataclass(frozen=True, repr=False)
class _WithoutLast(Statistic):
    """Mean squared error over bins of consecutive rows, sorted by p, without the last bin.

    It is Σ_b (O_b − E_b)² / (n_b n) over bins b of ``bin_size`` = n_b of the n rows, with O_b
    observed and E_b expected events. The last bin takes the remainder. Ties stay in the order of
    the file. StatisticError for fewer rows than two bins.
    """

    bin_size: int

    def prepare(self, problem: Problem) -> ScaledGaps:
        rows_of(problem, self)
        p, size = problem.event(self), self.bin_size
        starts = np.append(np.arange(p.size // size) * size, p.size)
        if starts.size < 3:
            raise StatisticError(
                f"the last bin is left out, so {2 * size} rows are needed; there are {p.size}"
            )
        cells = Cells(problem, np.argsort(p, kind="stable"), starts)
        scale = np.append(cells.counts[:-1] * float(p.size), np.inf)
        return ScaledGaps(problem, scale, 2, cells=cells)


@dataclass(frozen=True, eq=False)
class _KeptRows(LabelStatistic):
    """A statistic that is evaluated on some of the rows, with fixed predictions.

    ``inner`` is prepared for the kept rows alone, ``members`` (m,) are their indices among all
    rows.
    """

    inner: Prepared = field(repr=False)
    members: IntArray = field(repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        return self.inner.batch(labels[:, self.members])

    def cell_law(self) -> CellStatistic | None:
        return self.inner.cell_law()
