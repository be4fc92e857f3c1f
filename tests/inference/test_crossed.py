"""Two columns of clusters: shared draws of both, limits, two-way variances, and refusals."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t as student

import caltest as ct
from caltest.inference.comparison import _score_differences
from caltest.inference.dependence import (
    CrossedError,
    by_student,
    freedom_of,
    variance_of_difference,
)
from caltest.nulls.agreement import CrossedAgreement, TwoColumns, dependent
from caltest.statistics import Cells, RowProblem, prepare

P = np.array([0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35])
Y = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
A8, B8 = np.array([0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 2, 0, 1, 2, 0, 1])
EVERY = np.array(list(product((0, 1), repeat=8)))
#: By (λ₁, λ₂): E N*, and exact p-values of ECE(5), |Σ r|, Kuiper, CoxScore, by enumeration.
ENUMERATED = {
    (0.04, 0.25): (0.38075, 0.01995474643, 1.0, 0.49430379494, 0.21506807087),
    (0.25, 0.25): (0.7325, 0.03047900171, 1.0, 0.54112268726, 0.25798963623),
    (1.0, 0.0): (1.675, 0.08025, 1.0, 0.625625, 0.35475),
}
STATISTICS = (ct.ECE(5), ct.CalibrationInTheLarge(), ct.Kuiper(), ct.CoxScore())
pytestmark = pytest.mark.filterwarnings("ignore::caltest.errors.FewClustersWarning")


def eight():
    data = ct.OneVsRest(1)(ct.Predictions.of(P[:8], Y[:8]))
    return replace(data, clusters=A8, crossed=B8, cluster_names=("a", "b"))


def crossed(seed, readers=10, patients=20, slope=1.0):
    rng = np.random.default_rng(seed)
    a, b = np.divmod(np.arange(readers * patients), patients)
    eta = 0.5 * rng.standard_normal(readers)[a] + rng.standard_normal(a.size)
    return expit(eta), (rng.random(a.size) < expit(slope * eta)).astype(int), a, b


def two_law(first, second):
    """The law of all label vectors: each row takes the draw of a, of b, or its own."""
    s, t, p, law = np.sqrt(first), np.sqrt(second), P[:8], np.zeros(256)
    for choice in product(range(3), repeat=8):
        c = np.array(choice)
        weight = np.prod(np.array([s, t, 1.0 - s - t])[c])
        if weight <= 0.0:
            continue
        alone = c == 2
        part = np.where(EVERY[:, alone] == 1, p[alone], 1.0 - p[alone]).prod(axis=1)
        for which, group in ((0, A8), (1, B8)):
            for g in np.unique(group[c == which]):
                i = (c == which) & (group == g)
                low = np.where(EVERY[:, i] == 0, p[i], 0.0).max(axis=1, initial=0.0)
                high = np.where(EVERY[:, i] == 1, p[i], 1.0).min(axis=1, initial=1.0)
                part = part * np.maximum(high - low, 0.0)
        law += weight * part
    return law


def test_agreement_of_the_example():
    # Sums over the pairs of the eight rows, by other code; the second degree is (1 − √.9)².
    seen = CrossedAgreement.of(eight(), "label")
    each = [column(eight().labels[None], False)[0, 0] for column in seen.columns]
    sums = [seen.observed(), *each, *seen.joint, seen.columns[0].sums[0].sum()]
    assert sums == pytest.approx([-0.93, 0.925, -1.855, 1.675, 1.255, 1.48], abs=1e-12)
    assert seen.inflation((0.04, 0.25)) == 1.0
    object.__setattr__(seen, "limits", (0.9, 1.0))
    both = TwoColumns(eight(), ("label", "label"), seen, seen)
    assert both.degree(None) == pytest.approx((0.9, (1.0 - 0.9**0.5) ** 2), abs=1e-12)


@pytest.mark.parametrize("dependence", ENUMERATED)
def test_enumerated_values(dependence):
    data, law, p = eight(), two_law(*dependence), P[:8]
    pairs = ((A8[:, None] == A8) | (B8[:, None] == B8)) & ~np.eye(8, dtype=bool)
    residuals, expected = EVERY - p, ENUMERATED[dependence]
    products = np.einsum("bi,ij,bj->b", residuals, pairs.astype(float), residuals)
    assert law @ EVERY == pytest.approx(p, abs=1e-12)
    assert products @ law == pytest.approx(expected[0], abs=1e-8)
    scheme = ct.SharedRedraws(dependence=dependence, coupling=("label", "label"))
    drawn = scheme.drawer(data)((5, 6), 0, 60_000)
    shares = np.bincount((1 - drawn) @ 2 ** np.arange(8)[::-1], minlength=256) / 60_000
    for statistic, exact in zip(STATISTICS, expected[1:], strict=True):
        prepared = prepare(statistic, data)
        reaching = np.abs(prepared.batch(1 - EVERY)) >= abs(prepared.observed) - 1e-9
        assert law[reaching].sum() == pytest.approx(exact, abs=1e-8)
        assert shares[reaching].sum() == pytest.approx(exact, abs=0.009)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("couplings", [("label", "label"), ("correctness", "correctness")])
def test_marginals_and_products(n_classes, couplings):
    """E[x_i · x_j] = λ₁ [a_i = a_j] c_ij + λ₂ [b_i = b_j] c_ij, of labels or of being right."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(n_classes), 8)
    labels = [rng.choice(n_classes, p=row) for row in probs]
    data = ct.Canonical()(ct.Predictions.of(probs, labels))
    data = replace(data, clusters=A8, crossed=B8, cluster_names=("a", "b"))
    drawn = dependent(data, np.array([0.2, 0.3]), *couplings)((1, 2), 0, 60_000)
    hits = drawn[:, :, None] == np.arange(n_classes)
    np.testing.assert_allclose(hits.mean(axis=0), probs, atol=0.008)
    one = replace(data, crossed=None)
    alone = [dependent(replace(one, clusters=c), 1.0, couplings[0]) for c in (A8, B8)]
    pairs = zip(((0, 1), (0, 3), (1, 3)), (0.2, 0.3, 0.0), (*alone, alone[0]), strict=True)
    for (i, j), degree, draw in pairs:
        common = draw((3, 4), 0, 60_000)
        if couplings[0] == "label":
            x, z = hits - probs, (common[:, :, None] == np.arange(n_classes)) - probs
            found, whole = ((v[:, i] * v[:, j]).sum(axis=1).mean() for v in (x, z))
        else:
            top, most = probs.argmax(axis=1), probs.max(axis=1)
            x, z = (drawn == top) - most, (common == top) - most
            found, whole = ((v[:, i] * v[:, j]).mean() for v in (x, z))
        assert found == pytest.approx(degree * whole, abs=0.01)


def test_one_column_and_single_rows_change_nothing():
    p, y, a, b = crossed(1)
    run = {"statistic": ct.Kuiper(), "n_resamples": 99, "rng": 1}
    plain = ct.calibration_test(p, y, clusters=a, **run)
    for clusters in ({"reader": a, "row": np.arange(200)}, {"reader": a}, a[:, None]):
        again = ct.calibration_test(p, y, clusters=clusters, **run)
        assert (again.pvalue, again.clusters) == (plain.pvalue, plain.clusters)
    for clusters, words in (
        ({"x": a, "y": np.arange(200) // 5}, "clusters of y lie within clusters of x"),
        ({"site": b % 3, "reader": a}, "3 clusters of site are too few"),
    ):
        one = ct.calibration_test(p, y, clusters=clusters, **run)
        assert (one.pvalue, words in " ".join(one.notes)) == (plain.pvalue, True)


def debiased(p, a, b, keep=None, m=2):
    """Squared error from pairs that share neither cluster: a slow twin."""
    cell = np.minimum((p * m).astype(int), m - 1)
    r = Y - p
    k = np.ones(p.size, dtype=bool) if keep is None else keep
    apart = (cell[:, None] == cell) & ~((a[:, None] == a) | (b[:, None] == b)) & k[:, None] & k
    total = 0.0
    for c in range(m):
        i = (cell == c) & k
        pairs = apart[np.ix_(i, i)]
        if pairs.any():
            total += i.sum() / pairs.sum() * (r[i] @ pairs @ r[i])
    return total / k.sum()


def test_squared_errors_of_pairs_that_share_neither_whatever_column_comes_first():
    p, y, a, b = crossed(3)
    weights = np.random.default_rng(0).exponential(1.0, p.size)
    for first, second in ((a, b), (b, a)):
        facts = {"clusters": {"x": first, "y": second}, "weights": weights}
        test = ct.calibration_test(p, y, ct.DebiasedL2(2), n_resamples=99, rng=0, **facts)
        data = ct.OneVsRest(1)(ct.Predictions.of(p, y, **facts))
        error = CrossedError.of(Cells.of(ct.UniformBins(2), RowProblem(data)), data)
        assert test.estimate == pytest.approx(error.estimate, abs=1e-12)


def test_compare_by_enumerated_pairs():
    a, b, q = np.arange(12) // 4, np.arange(12) % 4, 0.25 + 0.5 * P
    errors, models = [], []
    for p in (P, q):
        data = ct.OneVsRest(1)(ct.Predictions.of(p, Y))
        data = replace(data, clusters=a, crossed=b, cluster_names=("a", "b"))
        error = CrossedError.of(Cells.of(ct.UniformBins(2), RowProblem(data)), data)
        assert error.estimate == pytest.approx(debiased(p, a, b), abs=1e-12)
        for column, left in ((a, error.omitting[0]), (b, error.omitting[1])):
            each = [debiased(p, a, b, column != g) for g in range(column.max() + 1)]
            assert left == pytest.approx(each, abs=1e-12)
        errors.append(error)
        model = SimpleNamespace(analysis=SimpleNamespace(data=data), rows=data, times=None)
        models.append(model)
    brier = _score_differences(*models, True, 0.95)[0]
    d = (Y - P) ** 2 - (Y - q) ** 2
    columns = ((a, 3), (b, 4), (np.arange(12), 12))
    v = [(np.bincount(g, d - d.mean()) ** 2).sum() / 144 * m / (m - 1) for g, m in columns]
    half = student.ppf(0.975, 2) * np.sqrt(max(v[0] + v[1] - v[2], *v[:2]))
    assert (brier.low, brier.high) == pytest.approx((d.mean() - half, d.mean() + half))
    value = errors[0].estimate - errors[1].estimate
    variance = variance_of_difference(*errors, data)
    # by other code, from the pairs of rows that share no cluster and from leaving clusters out
    assert (value, variance) == pytest.approx((0.02116071429, 0.00540474193), abs=1e-10)
    low, high, pvalue = by_student(value, variance, freedom_of(data), 0.95)
    # the same code, by Student's law
    assert pvalue == pytest.approx(0.80055921213, abs=1e-9)
    reach = student.ppf(0.975, 2) * np.sqrt(variance)
    assert (low, high) == pytest.approx((value - reach, value + reach))


def test_wrong_calls():
    p, y, a, b = crossed(4)
    both = {"clusters": {"reader": a, "patient": b}}
    cases = {
        "two columns at most": lambda: ct.calibration_test(p, y, clusters={"a": a, "b": b, "c": b}),
        "two columns at most: the two": lambda: ct.calibration_test(
            p, y, clusters=np.column_stack([a, b, a, b])
        ),
        r"clusters has the shape \(2, \d+\)": lambda: ct.calibration_test(p, y, clusters=[a, b]),
        "holds no column": lambda: ct.calibration_test(p, y, clusters={}),
        "several folds": lambda: ct.calibration_test(p, y, folds=a % 5, **both),
        "WildSigns": lambda: ct.calibration_test(p, y, null=ct.WildSigns(), **both),
        "OneRowPerCluster": lambda: ct.calibration_test(p, y, null=ct.OneRowPerCluster(), **both),
        "swap": lambda: ct.compare(p, p**2, y, method="swap", **both),
        "bootstrap": lambda: ct.confidence_interval(p, y, method="bootstrap", **both),
        "two columns of clusters": lambda: ct.meta_analysis(p, y, by=a % 3, **both),
        "a tally keeps no": lambda: ct.Tally.of(p, y, **both),
        "reader.*has no value": lambda: ct.calibration_test(
            p, y, clusters={"reader": [None, *a[1:]], "patient": b}
        ),
        "one value for each": lambda: ct.calibration_test(p, y, clusters={"r": a[1:], "p": b[1:]}),
        "horizon takes no clusters": lambda: ct.calibration_test(p, y, horizon=2, **both),
        "√λ₁": lambda: ct.SharedRedraws(dependence=(0.5, 0.5)),
        "is a pair": lambda: ct.calibration_test(p, y, null=ct.SharedRedraws(0.2), **both),
        "is for two columns": lambda: ct.calibration_test(
            p, y, null=ct.SharedRedraws((0.1, 0.2)), clusters=a
        ),
        "on the same rows": lambda: ct.compare(
            *[ct.Predictions.of(p, y, **both)] * 2, paired=False, as_is=True
        ),
    }
    for words, call in cases.items():
        with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
            call()


def test_files(tmp_path):
    p, y, a, b = crossed(5)
    path = tmp_path / "rows.csv"
    rows = zip(p.tolist(), y, a, b, strict=True)
    lines = ["p,y,reader,patient\n", *(f"{i!r},{j},r{k},{m}\n" for i, j, k, m in rows)]
    path.write_text("".join(lines))
    data = ct.read_predictions(path, clusters="reader,patient")
    run = {"n_resamples": 99, "rng": 1}
    seen = ct.calibration_test(data, statistic=ct.Kuiper(), **run)
    known = ct.calibration_test(p, y, ct.Kuiper(), clusters={"reader": a, "patient": b}, **run)
    assert (seen.pvalue, seen.clusters) == (known.pvalue, known.clusters)
