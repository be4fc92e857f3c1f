"""Fixtures shared by all tests, and the tables over which every invariant runs."""

import contextlib
import functools
import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy.special import expit
from twins import Row, rows

import caltest as ct
from caltest import cli
from caltest.cli import streams  # noqa: F401 (an attribute of cli)

# Workers of pytest-xdist are told a width, as if they had a terminal.
os.environ.pop("COLUMNS", None)

# The same examples every time; `pytest --hypothesis-profile=default` looks for others.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("fixed")


OF_TWO: dict[str, Any] = {"two_classes": True, "copies": False}
WHOLE: dict[str, Any] = {"whole": True, "copies": False}
#: Every statistic, in the forms that take different paths. A new one gets a row here, or in a list
#: ``ROWS`` beside its slow twin.
STATISTICS = [
    Row(ct.ECE(), exact=True, tally=1e-9),
    Row(ct.ECE(7, distance="l2"), exact=True),
    Row(ct.ECE(ct.VarianceTree(20), distance="sqeuclidean"), copies=False, exact=True),
    Row(ct.ECE(ct.QuantileBins(8), distance="max"), **OF_TWO, exact=True, tally=1e-9),
    Row(ct.MCE(5), exact=True, tally=1e-9),
    Row(ct.RMSCE(), **OF_TWO, exact=True, tally=1e-9),
    Row(ct.DebiasedL2(), copies=False, tally=1e-9),
    Row(ct.DebiasedL2(8, estimator="tcal"), copies=False, tally=1e-9),
    Row(ct.DebiasedL2(8, estimator="kumar"), **OF_TWO, weights=False, exact=True, tally=1e-9),
    Row(ct.DebiasedL1(8), **OF_TWO, exact=True, tally=1e-9),
    Row(ct.ClasswiseECE()),
    Row(ct.ClasswiseECE(5, aggregate="max", threshold=0.1)),
    Row(ct.SCE(10)),
    Row(ct.ACE(5), copies=False),
    Row(ct.TACE(5), copies=False),
    Row(ct.Sweep(), **OF_TWO),
    Row(ct.Sweep(norm="l2"), **OF_TWO),
    Row(ct.MultiScale(), copies=False, tally=1e-9),
    Row(ct.KolmogorovSmirnov(), two_classes=True, tally=1e-9),
    Row(ct.KolmogorovSmirnov(scaled=True), **OF_TWO, tally=1e-9),
    Row(
        ct.Kuiper(),
        two_classes=True,
        tally=1e-9,
        published=tuple(  # MCGrad
            (([0.6, 0.8, 0.2, 0.4], labels), ct.OneVsRest(1), value, 1e-12)
            for labels, value in (([0, 1, 0, 1], 0.15), ([1, 1, 1, 1], 0.5), ([0, 1, 0, 0], 0.3))
        ),
    ),
    Row(ct.CORP(), two_classes=True),
    Row(ct.CORP("log"), two_classes=True),
    Row(ct.SmoothECE(), two_classes=True),
    Row(ct.ICI(), **OF_TWO),
    Row(ct.E50(), **OF_TWO),
    Row(ct.E90(), **OF_TWO),
    Row(ct.Emax(), **OF_TWO),
    Row(ct.ICI(curve="loess"), **OF_TWO),
    Row(ct.ECI(curve="loess"), **OF_TWO),
    Row(ct.ECI(relative=False), **OF_TWO),
    Row(ct.VariationalError(), **OF_TWO, any_order=False),
    Row(ct.VariationalError("l2"), copies=False, any_order=False),
    Row(ct.RefinementError(), copies=False, any_order=False),
    Row(ct.BrierScore(), tally=1e-9),
    Row(ct.ScaledBrierScore()),
    Row(ct.LogScore(), tally=1e-9),
    Row(ct.SphericalScore(), tally=1e-4),
    Row(ct.ScoreGap(), copies=False, tally=1e-9),
    Row(ct.ScoreGap("log"), copies=False, tally=1e-9),
    Row(ct.CalibrationInTheLarge(), **OF_TWO, exact=True, tally=1e-9),
    Row(ct.MeanDifference(), two_classes=True, exact=True, tally=1e-9),
    Row(ct.OERatio(), two_classes=True, exact=True, tally=1e-9),
    Row(ct.HosmerLemeshow(), **OF_TWO, exact=True, tally=1e-9),
    Row(
        ct.HosmerLemeshow(ct.UniformBins(6), variance="exact"),
        two_classes=True,
        copies=False,
        exact=True,
        tally=1e-9,
    ),
    Row(ct.CoxScore(), **OF_TWO, tally=1e-9),
    Row(ct.MulticlassCox("level"), **WHOLE),
    Row(ct.MulticlassCox(), **WHOLE),
    Row(ct.MulticlassCox("vector"), **WHOLE),
    Row(ct.WorstClass(), **WHOLE),
    Row(ct.UtilityCalibration(ct.ReciprocalRank()), whole=True),
    Row(ct.UtilityCalibration(ct.TopKAccuracy(1)), whole=True),
    Row(ct.CoxLR(), **OF_TWO, weights=False),
    Row(ct.EValue(), copies=False, weights=False),
    Row(ct.SKCE(), copies=False),
    Row(ct.SKCE(ct.TVKernel(0.3), estimator="biased"), tally=1e-4),
    Row(ct.SKCE(ct.GaussianKernel(0.3), estimator="block"), copies=False, any_order=False),
    *rows(),
]
LENSES = [ct.TopK(1), ct.TopK(2), ct.Partition([[0, 2], [1, 3]]), ct.OneVsRest(2), ct.Canonical()]
PARTITIONS = [
    ct.UniformBins(10), ct.UniformBins(7, closed="left", axes="first"),
    ct.EdgeBins([0.2, 0.5, 0.9]), ct.QuantileBins(8), ct.VarianceTree(15),
    ct.VarianceTree(15, split="mean"),
]  # fmt: skip
SCHEMES = [ct.RedrawLabels(), ct.ConsistencyResampling(), ct.Bootstrap(), ct.SharedRedraws()]


def drawn(n: int, k: int, seed: int = 0, style: str = "smooth") -> ct.Predictions:
    """Return predictions of a calibrated model with labels, as a lens would show them."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(k, 0.8), n)
    if style == "ties":
        probs = generator.multinomial(20, probs) / 20
    labels = (generator.random((n, 1)) >= probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return seen(probs, np.minimum(labels, k - 1 - (probs[:, ::-1] > 0).argmax(axis=1)))


def problem(seed: int, n: int, k: int, style: str = "plain") -> tuple[Any, Any]:
    """Return probabilities with ties, zeros and ones as asked, and labels that ignore them."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(k, 0.5), n)
    if style == "decimals":
        probs = generator.multinomial(20, probs) / 20
    elif style == "ties":
        probs = probs[generator.integers(0, max(1, n // 4), n)]
    elif style == "corners":
        probs[: n // 2] = np.eye(k)[generator.integers(0, k, n // 2)]
    return probs, generator.integers(0, k, n)


def two(seed: int, n: int, style: str = "plain") -> tuple[Any, Any]:
    """Return probabilities of label 1 and labels."""
    probs, labels = problem(seed, n, 2, style)
    return probs[:, 1], labels


SEEDS = st.integers(0, 2**32 - 1)
STYLES = st.sampled_from(["plain", "decimals", "ties", "corners"])
PROBLEMS = st.builds(problem, SEEDS, st.integers(1, 60), st.sampled_from([2, 3, 10]), STYLES)
EVENTS = st.builds(two, SEEDS, st.integers(1, 40), STYLES)


def sloped(n: int, slope: float = 0.7, seed: int = 0) -> tuple[Any, Any]:
    """Return probabilities of label 1, and labels that follow a slope in log-odds."""
    generator = np.random.default_rng(seed)
    p = generator.random(n)
    return p, (generator.random(n) < 1 / (1 + ((1 - p) / p) ** slope)).astype(int)


def event(p: Any, y: Any = None) -> ct.Predictions:
    """Return probabilities of label 1 as a lens shows them that asks for it."""
    y = np.zeros(len(p), dtype=np.int64) if y is None else y
    return ct.OneVsRest(1)(ct.Predictions.of(p, y))


def seen(probs: Any, labels: Any = None) -> ct.Predictions:
    """Return rows of probabilities and labels as a lens would show them: class 0 is the event."""
    rows = np.asarray(probs, dtype=np.float64)
    marks = np.zeros(len(rows), dtype=np.int64) if labels is None else np.asarray(labels)
    return ct.Predictions(rows, marks.astype(np.int64), induced=True)


def cells_of(bins: Any, probs: Any, weights: Any = None) -> ct.Cells:
    """Return the cells of rows of probabilities."""
    return ct.Cells.of(bins, ct.RowProblem(replace(seen(probs), weights=weights)))


def one_hospital_too_low(n):
    """Return risks of patients of three hospitals, too low at the first, Porto."""
    rng = np.random.default_rng(4)
    by = rng.choice(["Porto", "Leuven", "Turku"], n)
    z = -1.5 + rng.standard_normal(n)
    y = rng.random(n) < expit(z + 1.2 * (by == "Porto"))
    return ct.Predictions.of(expit(z), y.astype(int), by=by)


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    """Close what belongs to pyplot, which other programs may have imported."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


class Understood(BaseException):
    """End of a command that has read its input; ``data`` are the rows, by the verb's argument."""

    def __init__(self, *data: Any) -> None:
        super().__init__()
        self.data = data


#: Functions of caltest by which commands answer.
ANSWERS = (
    *("audit", "calibration_test", "confidence_interval", "cox_recalibration", "segment_search"),
    *("plan", "report", "gate", "compare", "compare_models", "grade_tests", "meta_analysis"),
    *("reliability_curve", "reliability_fit", "reliability_simplex", "bin_sensitivity"),
    *("reliability_difference", "scan"),
)


def obstacle(words: list[str]) -> tuple[int, str, tuple[Any, ...]]:
    """Run a command until its input is read; return its exit code, its errors, and the rows.

    Nothing is asked of the rows, and nothing is written.
    """

    def stop(*data: Any, **options: Any) -> None:
        raise Understood(*data, *(options[k] for k in ("probs", "against") if k in options))

    error = io.StringIO()
    quiet = warnings.catch_warnings(action="ignore")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(error), quiet:
        for name in ANSWERS:
            real = getattr(ct, name)
            patch.setattr(ct, name, functools.wraps(real)(stop))
        patch.setattr(cli.streams, "counted", stop)
        patch.setattr(cli.streams, "added", stop)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                cli.main(words)
        except Understood as understood:
            return 0, error.getvalue(), understood.data
        except SystemExit as end:
            return int(end.code or 0), error.getvalue(), ()
    raise AssertionError("a command always ends")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a command, and returns its exit code and what it prints.

    Every line ``run:`` that is printed has to be read, and every other line has to be a command.
    """

    def of(*words: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main([str(word) for word in words])
        output = capsys.readouterr()
        for kind, command in re.findall(r"^(run|if .+?|say): caltest (.+)$", output.err, re.M):
            parts = shlex.split(command)
            if kind == "run" and "-" not in parts:
                code, error, _ = obstacle(parts)
                asks = re.search(r"^(run|if .+?|say): ", error, re.M)  # the next question
                assert code in (0, 1, 3) or asks, f"{command}: {error}"
        capsys.readouterr()
        return stop.value.code, output.out, output.err

    return of


@pytest.fixture
def done(run: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """A function that checks that a command ends with code 0, and returns what it prints."""

    def of(*words: Any) -> str:
        code, out, error = run(*words)
        assert code == 0, error
        return out

    return of


@pytest.fixture
def refused(run: Callable[..., tuple[int, str, str]]) -> Callable[..., None]:
    """A function that checks that a command ends with code 2 and a sentence."""

    def of(sentence: str, *words: Any) -> None:
        code, _, error = run(*words)
        assert (code, sentence in error) == (2, True), error

    return of


@pytest.fixture(params=[True, False])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether compiled code may read text, or is missing."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20190416)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of optional real data, named by the environment variable CALTEST_DATA."""
    folder = os.environ.get("CALTEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set CALTEST_DATA to the folder of real predictions to run this")
    return Path(folder)
