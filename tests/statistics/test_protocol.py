"""What a statistic may offer beyond being a function: two sides, laws, residuals, an interval."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import drawn

import caltest as ct
from caltest._base.arrays import reaching
from caltest.data import Predictions
from caltest.errors import StatisticError
from caltest.nulls.laws import AsymptoticNull, SimulatedNull


@dataclass(frozen=True, eq=False)
class Fixed(ct.LabelStatistic):
    p: np.ndarray

    def of_labels(self, labels):
        return float(((labels == 0) - self.p).sum() / np.sqrt((self.p * (1 - self.p)).sum()))


@dataclass(frozen=True, repr=False)
class MeanGap(ct.Statistic):
    """Outcomes minus predictions, standardised: signed."""

    essential = 0

    def prepare(self, problem):
        laws = {"asymptotic": lambda labels: AsymptoticNull(scipy.stats.norm())}
        return Fixed(problem, problem.event(self), two_sided=True, laws=laws)


FEW = Predictions.of([0.9, 0.8, 0.8, 0.7, 0.6, 0.95], [0, 0, 1, 0, 0, 1])


def by_enumeration(data):
    p, t = data.probs[:, 1], abs(MeanGap()(data.probs[:, 1], data.labels))
    total = 0.0
    for code in range(2**data.n):
        y = code >> np.arange(data.n) & 1
        if abs(MeanGap()(p, y)) >= t - 1e-9:
            total += float(np.where(y == 1, p, 1 - p).prod())
    return total


def test_two_sides_are_added_up_exactly():
    result = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1))
    assert result.null == "exact"
    assert result.estimate < 0
    assert result.pvalue == pytest.approx(by_enumeration(FEW), rel=1e-9)
    assert result.null_mean == pytest.approx(0, abs=1e-12)


def test_two_sides_are_counted_in_a_simulation():
    null = ct.RedrawLabels()
    result = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1), null=null, rng=1)
    assert result.pvalue == pytest.approx(by_enumeration(FEW), abs=4 * result.pvalue_error)


def test_two_sides_stop_early_and_count_in_max_t():
    calm = ct.examples.SixPoints().sample(300, rng=2)
    run = {"null": ct.RedrawLabels(), "early_stop": True, "n_resamples": 999, "rng": 1}
    early = ct.calibration_test(calm, None, MeanGap(), **run)
    assert early.ended == "early"
    low = Predictions.of(np.full(200, 0.8), np.repeat([1, 0], [100, 100]))
    joint = ct.joint_test(low, pairs=[(MeanGap(), ct.OneVsRest(1))], n_resamples=99, rng=1)
    assert joint.adjusted == (0.01,)


def test_a_law_of_its_own():
    asymptotic = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1), null="asymptotic")
    assert asymptotic.pvalue == pytest.approx(2 * scipy.stats.norm.sf(abs(asymptotic.estimate)))
    assert (asymptotic.null_mean, asymptotic.null_std) == (0.0, 1.0)


def test_a_class_must_answer_somehow():
    with pytest.raises(TypeError, match="must define batch or of_labels"):
        type("Silent", (ct.LabelStatistic,), {})


class Loudest(ct.ResidualStatistic):
    """A statistic of somebody else: the largest residual, and the mean square."""

    def of_residuals(self, residuals, squares):
        return np.abs(residuals).max(axis=(1, 2)) ** 2 + squares.mean(axis=1)


def test_a_function_of_residuals_is_inflated_by_their_variance():
    data = drawn(20, 3, 1)
    fixed = Loudest(ct.RowProblem.of(data))
    r = np.eye(3)[data.labels] - data.probs
    expected = np.abs(r).max() ** 2 + (r**2).sum(axis=1).mean()
    assert fixed(data.labels) == pytest.approx(expected)
    assert fixed.values(data.labels[None], 2.25) == pytest.approx([2.25 * expected])


def test_a_function_may_take_weights():
    def weighted(probs, labels, weights):
        return float(weights @ (labels == 0))

    def plain(probs, labels):
        return 1.0

    data = Predictions.of([0.2, 0.6, 0.9], [0, 1, 1], weights=[1, 2, 3])
    assert ct.replicate(data, weighted, ct.RedrawLabels(), n_resamples=5, rng=0).values.max() <= 6
    with pytest.raises(StatisticError, match="third parameter named weights"):
        ct.replicate(data, plain, ct.RedrawLabels(), n_resamples=5)


CLASS_STATISTICS = [ct.ClasswiseECE(), ct.SCE(), ct.ACE(), ct.TACE()]
EVENT_STATISTICS = [ct.RMSCE(), ct.DebiasedL1(), ct.DebiasedL2(), ct.HosmerLemeshow()]


@pytest.mark.parametrize("statistic", [*CLASS_STATISTICS, *EVENT_STATISTICS], ids=repr)
def test_sparse_cells_are_warned_of_whatever_the_statistic(statistic):
    data = drawn(40, 3 if statistic in CLASS_STATISTICS else 2, 1)
    with pytest.warns(ct.SparseBinsWarning):
        ct.calibration_test(data, None, statistic, null=ct.ConsistencyResampling(), n_resamples=9)


VERBS = {
    "calibration_test": ct.calibration_test,
    "joint_test": lambda p, y, **facts: ct.joint_test(p, y, pairs=[(ct.ECE(), None)], **facts),
    "confidence_interval": ct.confidence_interval,
    "compare": lambda p, y, **facts: ct.compare(p, p[::-1], y, **facts),
    "audit": ct.audit,
    "equivalence_test": lambda p, y, **facts: ct.equivalence_test(p, y, tolerance=0.5, **facts),
    "gate": lambda p, y, **facts: ct.gate(p, y, tolerance=0.5, **facts),
    "reliability_curve": ct.reliability_curve,
    "reliability_fit": ct.reliability_fit,
    "reliability_difference": lambda p, y, **f: ct.reliability_difference(p, p[::-1], y, **f),
    "bin_sensitivity": ct.bin_sensitivity,
    "cox_recalibration": ct.cox_recalibration,
    "corp_decomposition": ct.corp_decomposition,
    "brier_decomposition": ct.brier_decomposition,
}


#: Verbs that honour a fact.
DESIGNED = (
    *("audit", "calibration_test", "joint_test", "reliability_curve", "reliability_fit"),
    *("compare", "confidence_interval", "bin_sensitivity", "cox_recalibration"),
    *("corp_decomposition", "brier_decomposition", "equivalence_test", "gate"),
)
HONOURED = {
    "clusters": DESIGNED,
    "by": (
        *("audit", "calibration_test", "compare", "confidence_interval", "joint_test"),
        "reliability_curve",
    ),
    "weights": DESIGNED,
}


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_ignores_a_fact(name):
    p, y = np.linspace(0.1, 0.9, 30), np.arange(30) % 2
    facts = {"weights": np.arange(1, 31), "clusters": np.arange(30) // 3, "by": np.arange(30) % 2}
    for fact, values in facts.items():
        if name in HONOURED.get(fact, ()):
            continue
        with pytest.raises(StatisticError, match=f"{name} does not take {fact} yet"):
            VERBS[name](p, y, **{fact: values})
        VERBS[name](p, y, **{fact: np.ones(30)} if fact == "weights" else {})
    with pytest.raises(TypeError, match="has no argument 'n_bins'"):
        VERBS[name](p, y, n_bins=3)


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_tests_the_rows_of_a_fit(name):
    data = ct.examples.GaussianMixture(0, -3).sample(200, rng=1)
    repaired = ct.recalibration.TemperatureScaling().fit(data)(data)
    pairs = ("compare", "reliability_difference")
    verb = getattr(ct, name) if name in pairs else VERBS[name]
    ask = partial(verb, repaired, data if name in pairs else None)
    with pytest.raises(StatisticError, match="fit"):
        ask()


@pytest.mark.parametrize("name", VERBS)
def test_verbs_take_the_keywords_of_predictions(name):
    p, words = np.linspace(0.1, 0.9, 30), np.where(np.arange(30) % 3 == 0, "yes", "no")
    told = VERBS[name](p, words, pos_label="yes")
    assert replace(told, notes=()).n == VERBS[name](p, (words == "yes").astype(int)).n == 30
    assert VERBS[name](np.log(p / (1 - p)), (words == "yes").astype(int), from_logits=True).n == 30


def test_reaching_counts_ties():
    values = np.array([-2.0, 0.3, 0.1 + 0.2, 1.0])
    np.testing.assert_array_equal(reaching(0.3, values), [False, True, True, True])
    np.testing.assert_array_equal(reaching(-0.3, values, two_sided=True), [True] * 4)
    assert SimulatedNull(values).sf(0.3) == 0.75
