"""Exact null laws against enumeration, recursion, convolution of whole numbers and simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from conftest import seen
from twins import basic as ref

import caltest as ct
from caltest.inference import null as exact
from caltest.inference.null import cell_null, enumerated_null
from caltest.nulls.laws import ExactNull, RootNull, SimulatedNull, fast_length, poisson_binomial
from caltest.statistics.prepared import problem_of

DISTANCES = ["tv", "l1", "l2", "sqeuclidean", "max", ref.hellinger]


def name_of(distance):
    return distance if isinstance(distance, str) else distance.__name__


def full_law(p):
    """The package's law on all counts 0 … n, and its promised error."""
    first, pmf, lost = poisson_binomial(np.asarray(p, float))
    whole = np.zeros(len(p) + 1)
    whole[first : first + len(pmf)] = pmf
    return whole, lost


def trials(kind, n, seed=5):
    return KINDS[kind](np.random.default_rng(seed), n)


KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "extreme": lambda rng, n: rng.beta(0.1, 0.1, n),
    "narrow": lambda rng, n: rng.uniform(0.3, 0.301, n),
    "tiny": lambda rng, n: 10.0 ** rng.uniform(-12, -2, n),
    "certain": lambda rng, n: np.where(
        np.arange(n) % 5 == 1, 1.0, np.where(np.arange(n) % 3 == 0, 0.0, rng.random(n))
    ),
    "decimals": lambda rng, n: np.round(rng.random(n), 1),
    "confident": lambda rng, n: 1.0 - rng.beta(0.5, 20.0, n),
}


def two(p):
    """Return the two columns of a problem whose event is class 0."""
    return np.column_stack([p, 1 - p])


@pytest.mark.parametrize("n", [1, 2, 5, 30, 63, 64, 65, 100, 255, 256, 257, 1000, 20_000])
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.001, 0.3, 0.5, 0.8, 1 - 1e-6, 1.0])
def test_poisson_binomial_against_binomial(n, p):
    law, lost = full_law(np.full(n, p))
    expected = scipy.stats.binom.pmf(np.arange(n + 1), n, p)
    assert 0 <= lost < 1e-10
    # scipy's own relative error near the mode at n = 20 000 is some 1e-13.
    assert np.abs(law - expected).max() <= lost + 2e-13
    assert np.abs(np.cumsum(law) - np.cumsum(expected)).max() <= lost + 1e-12
    assert law.min() >= 0


def check_against_recursion(p):
    law, lost = full_law(p)
    difference = law.astype(np.longdouble) - ref.poisson_binomial_law(p)
    assert 0 <= lost < 1e-10
    assert np.abs(difference).sum() <= 10 * lost + 1e-14
    assert largest_tail(difference) <= lost + 1e-15


def largest_tail(difference):
    """The largest sum from either end."""
    return max(np.abs(np.cumsum(d)).max() for d in (difference, difference[::-1]))


@pytest.mark.parametrize(
    "n", [1, 2, 7, 16, 17, 64, 65, 256, 257, 1000, pytest.param(12_001, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_poisson_binomial_against_recursion(kind, n):
    check_against_recursion(trials(kind, n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "extreme", "narrow", "confident"])
def test_poisson_binomial_against_long_double_convolution(kind):
    p = trials(kind, 200_000)
    start, expected = ref.poisson_binomial_window(p)
    first, pmf, lost = poisson_binomial(p)
    low, high = min(start, first), max(start + len(expected), first + len(pmf))
    difference = np.zeros(high - low, np.longdouble)
    difference[first - low : first - low + len(pmf)] += pmf
    difference[start - low : start - low + len(expected)] -= expected
    assert largest_tail(difference) <= lost + 1e-15


def test_poisson_binomial_against_recursion_on_mixtures_and_at_the_edges():
    # Groups of similar p on both sides of the sizes at which the method changes.
    generator = np.random.default_rng(8)
    for sizes in ([15, 16, 17], [255, 256, 257, 258], [1, 3000], [600, 5, 5, 600]):
        p = np.concatenate([generator.uniform(0, 1) * np.ones(s) for s in sizes])
        check_against_recursion(p)
        check_against_recursion(np.clip(p + generator.normal(0, 1e-3, p.size), 0, 1))
    for p in ([0.0], [1.0], [0.0] * 70, [1.0] * 70, [0.0] * 70 + [1.0] * 70, [0.5] + [1.0] * 99):
        check_against_recursion(np.array(p))
    for p in (1e-300, 1 - 2**-53, np.nextafter(0, 1)):
        check_against_recursion(np.full(300, p))


SMALL = {
    "plain": np.array([0.12, 0.77, 0.35, 0.5, 0.91, 0.64, 0.23, 0.08, 0.83, 0.41]),
    "ties": np.array([0.3, 0.3, 0.3, 0.7, 0.7, 0.7, 0.7, 0.2, 0.2, 0.5, 0.5, 0.5]),
    "certain": np.array([0.0, 1.0, 0.4, 0.4, 1.0, 0.0, 0.25, 0.75, 0.9, 0.9]),
    "single": np.array([0.37]),
    "halves": np.full(8, 0.5),
    "tiny": np.array([1e-14, 1e-6, 0.2, 1 - 1e-13, 0.6, 0.6, 0.999]),
}
BINNINGS = [
    ct.UniformBins(1), ct.UniformBins(3), ct.UniformBins(5, closed="left"), ct.UniformBins(100),
    ct.QuantileBins(3), ct.QuantileBins(4, closed="left"), ct.VarianceTree(2),
    ct.VarianceTree(3, split="mean"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bins", BINNINGS, ids=repr)
@pytest.mark.parametrize("distance", DISTANCES, ids=name_of)
@pytest.mark.parametrize("name", SMALL)
def test_exact_law_against_enumeration(name, distance, bins):
    p = SMALL[name]
    probs = two(p)
    cells = bins(probs)
    generator = np.random.default_rng(len(p))
    for kind, slow in ((ct.ECE, ref.ece), (ct.MCE, ref.mce)):
        statistic = kind(bins, distance=distance)
        prepared = statistic.prepare(problem_of(seen(probs)))
        values, weights = ref.enumerated_law(prepared, probs)
        check = slow(probs, np.zeros(len(p), int), cells, distance)
        assert statistic(seen(probs)) == pytest.approx(check, abs=1e-13)
        for t in generator.choice(values, min(4, len(values)), replace=False):
            law = cell_null(prepared.cell_law(), float(t))
            tail, mean, deviation = ref.summary(values, weights, t)
            low, high = law.bracket(t)
            assert low - 1e-12 <= tail <= high + 1e-12
            assert high - low <= 0.0101 * high + 1e-12
            assert law.mean() == pytest.approx(mean, abs=1e-10)
            # A standard deviation that is 0 exactly is known to the root of the rounding only.
            assert law.std() == pytest.approx(deviation, abs=1e-10 if deviation > 1e-6 else 2e-8)


@pytest.mark.parametrize("seed", range(12))
def test_exact_test_against_enumeration(seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 11))
    p = np.round(generator.random(n), int(generator.integers(1, 4)))
    y = (generator.random(n) < p).astype(int)
    statistic = [ct.ECE, ct.MCE][seed % 2](ct.UniformBins(int(generator.integers(1, 8))))
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y))
    fixed = statistic.prepare(problem_of(data))
    values, weights = ref.enumerated_law(fixed, data.probs)
    result_law = cell_null(fixed.cell_law(), fixed(data.labels))
    tail, mean, deviation = ref.summary(values, weights, fixed(data.labels))
    low, high = result_law.bracket(fixed(data.labels))
    assert low - 1e-12 <= tail <= high + 1e-12
    if deviation > 1e-9:
        result = ct.calibration_test(p, y, statistic, lens=ct.OneVsRest(1))
        assert result.pvalue == pytest.approx(max(high, np.finfo(float).tiny), abs=1e-13)
        assert result.null_mean == pytest.approx(mean, abs=1e-10)
        assert result.null_std == pytest.approx(deviation, abs=1e-10)


@pytest.mark.parametrize("distance", ["tv", "l2", "max", ref.hellinger], ids=name_of)
def test_enumerated_null_against_enumeration(distance, rng):
    probs = rng.dirichlet([0.7, 0.7, 0.7], 7)
    probs[2], probs[5] = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    probs[6] = probs[1]
    fixed = ct.ECE(ct.UniformBins(2), distance=distance).prepare(problem_of(seen(probs)))
    values, weights = ref.enumerated_law(fixed, probs)
    law = enumerated_null(fixed, probs)
    assert isinstance(law, ExactNull)
    for t in np.unique(values)[::40]:
        tail, mean, deviation = ref.summary(values, weights, t)
        assert (*law.bracket(t), law.sf(t)) == pytest.approx((tail,) * 3, abs=1e-12)
    assert (law.mean(), law.std()) == pytest.approx((mean, deviation), abs=1e-10)


def test_exact_p_against_binomial_far_in_the_tail():
    # 500 rows of 0.5, 450 hits: P(|O − 250| ≥ 200) = 2 P(O ≥ 450), some 1e-81; the FFT floor is
    # about 1e-16, so the answer may be no better than a bound, but it must be one.
    y = np.r_[np.ones(450, int), np.zeros(50, int)]
    result = ct.calibration_test(np.full(500, 0.5), y, ct.ECE(15), lens=ct.OneVsRest(1))
    truth = 2 * scipy.stats.binom.sf(449, 500, 0.5)
    low, high = result.pvalue_bracket
    assert low <= truth <= max(high, np.finfo(float).tiny)
    assert truth <= result.pvalue < 1e-10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("low", "high", "m"), [(0, 1, 10), (0.9, 1, 40), (0.9, 1, 1), (0.55, 1, 15), (0.1, 0.7, 10)]
)
def test_exact_bracket_of_decimals_closes(low, high, m, seed):
    # Predictions of two decimals put all values on a lattice, also those of a confident model.
    first = np.round(np.random.default_rng(seed).uniform(low, high, 400), 2)
    fixed = ct.ECE(m).prepare(problem_of(seen(two(first))))
    cells = ref.uniform_cells(np.column_stack([first, 1 - first]), m)
    values, weights = ref.decimal_l1_law(first, cells, 2)
    order = np.argsort(values)
    tails = np.cumsum(weights[order][::-1])[::-1].astype(float)
    for level in (0.5, 0.1, 0.01, 1e-4):
        j = int(np.searchsorted(-tails, -level))
        t = values[order][j] / 40_000
        lower, upper = cell_null(fixed.cell_law(), t).bracket(t)
        assert lower / (1 + 1e-9) <= tails[j] <= upper * (1 + 1e-9)
        assert upper - lower <= 0.0101 * upper


@pytest.mark.parametrize("distance", ["tv", "l2"])
def test_exact_bracket_holds_at_the_rounding_floor(distance):
    # For two classes l2 = √2 tv: the same law off the lattice, on the finest grid. Below 1e-14
    # nothing but rounding is left, and the lower end must not take it for probability.
    first = np.random.default_rng(1).integers(1, 10, 60) / 10
    bins = ct.UniformBins(15)
    values, weights = ref.decimal_l1_law(first, ref.uniform_cells(first, 15), 1)
    order = np.argsort(values)
    tails = np.cumsum(weights[order][::-1])[::-1].astype(float)
    fixed = ct.ECE(bins, distance=distance).prepare(problem_of(seen(two(first))))
    law = cell_null(fixed.cell_law(), 0.2 if distance == "tv" else 0.2 * np.sqrt(2))
    assert abs(law.tail[0] - 1) <= law.error + 1e-15  # the promise, where it is easy to check
    for level in 10.0 ** -np.arange(1, 22):
        j = int(np.searchsorted(-tails, -level))
        t = values[order][j] / 600 * (1 if distance == "tv" else np.sqrt(2))
        low, high = law.bracket(t)
        assert low / (1 + 1e-9) <= tails[j] <= high * (1 + 1e-9)


def test_quantiles_of_a_law_of_three_values():
    law = ExactNull(np.array([0.1, 0.4, 0.9]), np.array([1.0, 0.5, 0.2]), 0.4, 0.3)
    assert [law.ppf(q) for q in (0.0, 0.5, 0.51, 0.8, 0.81, 1.0)] == [0.1, 0.1, 0.4, 0.4, 0.9, 0.9]
    assert [law.sf(t) for t in (0.1, 0.11, 0.4, 0.9, 0.91)] == [1.0, 0.5, 0.5, 0.2, 0.0]


def test_root_of_a_law_of_three_values():
    square = ExactNull(np.array([0.0, 0.25, 1.0]), np.array([1.0, 0.5, 0.2]), 0.275, 0.4)
    law = RootNull.of(square)
    assert law.support.tolist() == [0.0, 0.5, 1.0]
    assert (law.bracket(0.0), law.bracket(-1.0)) == ((1.0, 1.0), (1.0, 1.0))
    assert law.bracket(0.5) == square.bracket(0.25) == (0.5, 0.5)
    mean = 0.3 * 0.5 + 0.2
    assert (law.mean(), law.std() ** 2) == pytest.approx((mean, 0.3 * 0.25 + 0.2 - mean**2))


def test_simulated_null_against_order_statistics():
    values = np.array([0.3, 0.1, 0.2, 0.2, 0.5])
    law = SimulatedNull(values)
    assert [law.sf(t) for t in (0.05, 0.1, 0.2, 0.2 + 1e-14, 0.3, 0.5, 0.51)] == pytest.approx(
        [1, 1, 0.8, 0.8, 0.4, 0.2, 0]
    )
    assert [law.ppf(q) for q in (0.2, 0.21, 0.6, 0.61, 1.0)] == [0.1, 0.2, 0.2, 0.3, 0.5]
    assert np.array_equal(np.asarray(law), values)
    assert len(law) == 5


def tail_by_halves(p, cell, estimate):
    """P(T ≥ t) and P(T > t) of a squared error of two classes, from the sums of two halves."""
    halves = []
    for cells in np.array_split(np.unique(cell), 2):
        total, mass = np.zeros(1), np.ones(1)
        for b in cells:
            rows = p[cell == b]
            law = np.ones(1)
            for q in rows:
                law = np.convolve(law, [1.0 - q, q])
            count = np.flatnonzero(law > 1e-14)
            term = (count - rows.sum()) ** 2 / (rows.size * p.size)
            total = np.add.outer(total, term).ravel()
            mass = np.multiply.outer(mass, law[count]).ravel()
            total, mass = total[mass > 1e-14], mass[mass > 1e-14]
        order = np.argsort(total)
        halves.append((total[order], np.append(np.cumsum(mass[order][::-1])[::-1], 0), mass[order]))
    (a, _, mass), (b, tail, _) = halves
    tie = 1e-9 * estimate
    return [float(mass @ tail[np.searchsorted(b, estimate + e - a)]) for e in (-tie, tie)]


def test_rare_events_have_brackets_that_hold_and_are_narrow():
    # One event in a cell of rare ones is hundreds of deviations: the grid did not resolve the rest.
    wide = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, 40.0, 200) if seed % 2 else np.clip(rng.gamma(0.2, 0.02, 300), 1e-6, 0.9)
        labels = (rng.random(p.size) < p * (1 + 0.5 * seed)).astype(int)
        squared = ct.ECE(ct.QuantileBins(8), distance="sqeuclidean")
        data = ct.OneVsRest(1)(ct.Predictions.of(p, labels))
        estimate = squared.prepare(problem_of(data))(data.labels) / 2
        lower, upper = ct.calibration_test(data, None, ct.RMSCE(ct.QuantileBins(8))).pvalue_bracket
        least, most = tail_by_halves(p, ct.QuantileBins(8)(p), estimate)[::-1]
        assert lower / (1 + 1e-9) <= most <= upper / (1 - 1e-9)
        wide.append((upper - lower) / (upper - min(least, upper) + 0.011 * upper))
    assert max(wide) <= 1.0  # but for the atom at the estimate


def test_a_law_that_ends_early_is_continued():
    law = ExactNull(np.array([2.0, 2.5, 3.0]), np.array([1.0, 0.5, 0.2]), 2.4, 0.3, slack=0.1)
    tail = np.array([1.0, 1.0, 0.3, 0.25, 0.05])
    found = exact._continued(law, tail, 0.4, origin=1.0, step=1.0)
    assert found.support.tolist() == [2.0, 2.5, 3.0, 4.0, 5.0]
    assert found.tail.tolist() == [1.0, 0.5, 0.2, 0.2, 0.05]  # no larger than where it ends
    assert (found.edge, found.slack_beyond) == (3.0 - 0.2, 0.4)
    finer = exact._continued(replace(law, slack=0.5), tail, 0.4, origin=1.0, step=1.0)
    assert finer.slack_beyond == 0.5
    assert found.bracket(4.3) == (0.05, 0.2)  # 0.4 either way
    assert found.bracket(2.5) == (0.2, 0.5)  # 0.1 either way
    assert found.bracket(2.75) == (0.2, 0.2)


def test_both_tails_together_are_at_most_one():
    law = ExactNull(np.array([-1.0, 1.0]), np.array([1.0, 0.5]), 0.0, 1.0)
    for t in (0.0, 1.0):
        assert law.bracket(t, two_sided=True) == (pytest.approx(1.0), 1.0)
    assert law.bracket(1.5, two_sided=True) == (0.0, 1e-15)
    thirds = ExactNull(np.array([-1.0, 0.0, 1.0]), np.array([1.0, 2 / 3, 1 / 3]), 0.0, 1.0)
    assert thirds.bracket(0.0, two_sided=True) == (1.0, 1.0)  # the centre is in both tails
    assert thirds.bracket(1.0, two_sided=True) == pytest.approx((2 / 3, 2 / 3))
    shifted = ExactNull(np.array([4.0, 5.0, 8.0]), np.array([1.0, 0.75, 0.25]), 5.5, 1.0)
    low, high = shifted.bracket(8.0, two_sided=True, centre=6.0)
    assert (low, high) == pytest.approx((0.5, 0.5), abs=1e-14)  # 4 and 8
    assert shifted.bracket(5.0, two_sided=True, centre=6.0) == (pytest.approx(1.0), 1.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_grid_of_a_root_is_fine_at_its_square(seed):
    """Its square is smaller by orders of magnitude, and there the bracket has to be narrow."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.5, 3.0, 2000), 3)
    labels = (rng.random(2000) < 1.3 * p).astype(int)
    run = {"lens": ct.OneVsRest(1), "null": "exact"}
    root = ct.calibration_test(p, labels, ct.RMSCE(ct.UniformBins(20)), **run)
    squared = ct.calibration_test(p, labels, ct.ECE(20, distance="sqeuclidean"), **run)
    assert root.estimate == pytest.approx(math.sqrt(squared.estimate / 2.0))
    low, high = root.pvalue_bracket
    assert (low, high) == pytest.approx(squared.pvalue_bracket, rel=1e-2)
    assert high - low <= 0.01 * high


@pytest.mark.parametrize("p", [1e-4, 0.003, 0.05, 0.5])
def test_the_window_is_as_wide_as_bernstein_says(monkeypatch, p):
    """P(|S − μ| ≥ h) ≤ 2 exp(−h² / (2 (V + h/3))), solved for h at 1e-17: no wider, no narrower."""
    from caltest.nulls import laws as module

    n, asked, fast_length = 5000, [], module.fast_length
    monkeypatch.setattr(module, "fast_length", lambda size: asked.append(size) or fast_length(size))
    _, pmf, lost = module.poisson_binomial(np.full(n, p))
    low, high = 0.0, 1e5
    while high - low > 1e-9:
        h = 0.5 * (low + high)
        bound = 2.0 * math.exp(-h * h / 2.0 / (n * p * (1.0 - p) + h / 3.0))
        low, high = (h, high) if bound > 1e-17 else (low, h)
    assert asked == [min(n, int(n * p + low) + 1) - max(0, int(n * p - low)) + 1]
    assert pmf.sum() == pytest.approx(1.0, abs=lost)
    assert min(pmf[0], pmf[-1]) > 1e-17
    assert 2e-17 < lost == pytest.approx(2e-17 + 2e-14 + 5e-17 * math.sqrt(n))


def test_lengths_that_transform_fast():
    fast = sorted(2**i * 3**j * 5**k for i in range(14) for j in range(9) for k in range(6))
    for size in range(1, 2100):
        assert fast_length(size) == next(f for f in fast if f >= size)


@pytest.mark.parametrize("sizes", [(3, 5), (70, 65), (65, 200), (64, 300), (1, 1)])
def test_convolution_of_two_laws(sizes):
    rng = np.random.default_rng(sizes)
    a, b = (rng.dirichlet(np.ones(size)) for size in sizes)
    b[-1] = 1e-30
    found, expected = exact._convolved(a, b), np.convolve(a, b)
    beyond = np.cumsum(expected[::-1])[::-1]
    assert found.size == (beyond >= exact.NEGLIGIBLE).sum()
    assert found == pytest.approx(expected[: found.size], abs=1e-16)
    assert np.array_equal(exact._convolved(b, a), found)


def test_reach_is_chernoffs_bound():
    masses, values = [np.array([0.9, 0.1])] * 40, [np.array([0.0, 1.0])] * 40
    deviation = math.sqrt(40 * 0.09)
    found, room = exact._reach(masses, values, deviation, 0.0, 1e-15)
    assert room == pytest.approx(0.45 * 0.01 * deviation / 1.2)
    thetas = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]) / deviation
    bounds = [(40 * math.log(0.9 + 0.1 * math.exp(t)) - math.log(1e-17)) / t for t in thetas]
    assert found == pytest.approx(min(40.0, *bounds))
    assert exact._reach(masses[:2], values[:2], deviation, 0.0, 1e-15)[0] == 2.0

    def bound(t):
        return (40 * math.log(0.9 + 0.1 * math.exp(t)) - math.log(1e-17)) / t

    best = scipy.optimize.minimize_scalar(bound, bounds=(0.1, 9.0), method="bounded").x
    assert bound(best) < 40.0
    for multiple in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0):  # each in turn where the best one is
        found, room = exact._reach(masses, values, multiple / best, 0.0, 1e-15)
        assert found == pytest.approx(bound(best), rel=1e-9)
    certain = [np.array([1.0, 0.0])], [np.array([0.0, 5.0])]
    assert exact._reach(*certain, 1.0, 0.0, 1e-15)[0] == pytest.approx(-math.log(1e-17) / 12.0)


def test_a_grid_that_is_cut_holds_the_rest_in_its_tails():
    """Three cells against all their sums: values move to multiples, by a known distance at most."""
    masses = [np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1]), np.array([0.25, 0.75])]
    values = [np.array([0.0, 0.31, 0.62]), np.array([0.0, 1.02]), np.array([0.0, 0.58])]
    step = 0.2
    moved = [np.rint(v / step).astype(int) for v in values]
    for size, cut in ((12, False), (12, True), (8, True), (5, True)):
        tail, slack, begins = exact._on_grid(masses, values, step, size, cut)
        left = [(v - m * step)[m < size] for v, m in zip(values, moved, strict=True)]
        assert slack + begins == pytest.approx(sum(v.max() for v in left))
        assert slack - begins == pytest.approx(-sum(v.min() for v in left))
        expected = np.zeros(len(tail))
        for i, j, k in np.ndindex(3, 2, 2):
            mass = masses[0][i] * masses[1][j] * masses[2][k]
            total = moved[0][i] + moved[1][j] + moved[2][k]
            expected[: min(total, len(tail) - 1) + 1] += mass
        if cut:  # what lies beyond counts in all tails
            assert tail[0] == pytest.approx(1.0)
            assert tail == pytest.approx(expected, abs=1e-12)
        else:
            assert tail[: len(expected)] == pytest.approx(expected, abs=1e-12)
