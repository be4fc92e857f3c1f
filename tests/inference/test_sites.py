"""Calibration over sites: random effects against published numbers, a slow twin and simulation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

import caltest as ct
from caltest.inference.cox import centre_curve, pooled_sites, restricted_spline

#: Thirteen trials of BCG: cases and others, vaccinated and not (Colditz et al. 1994).
BCG = np.array(
    [
        *((4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619)),
        *((33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619)),
        *((505, 87886, 499, 87892), (29, 7470, 45, 7232), (17, 1699, 65, 1600)),
        *((186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825)),
    ],
    dtype=float,
)


def bcg():
    a, b, c, d = BCG.T
    values = np.log(a / (a + b)) - np.log(c / (c + d))
    return np.array([values, np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d))])


def test_published_by_metafor():
    """What ``rma(yi, vi, test="knha")`` and ``predict`` print in the package's own page."""
    found = pooled_sites(bcg(), 0.95)
    spread = found.tau**2, found.tau, found.i_squared, found.q
    assert spread == pytest.approx((0.3132, 0.5597, 0.9222, 152.2330), abs=5e-5)
    mean = found.mean, found.mean_se, found.mean / found.mean_se, *found.interval, found.pvalue
    printed = -0.7145, 0.1808, -3.9522, -1.1084, -0.3206, 0.0019
    assert mean == pytest.approx(printed, abs=5e-5)
    assert np.exp(found.prediction) == pytest.approx((0.14, 1.76), abs=5e-3)


def test_reference_values_of_five_sites_and_of_a_spline():
    """Knapp & Hartung's interval and that of a new site; Harrell's basis, and its fit at one.

    By other code, from the formulas: τ² by Newton's steps of the REML equation.
    """
    errors = np.array([0.2, 0.25, 0.15, 0.3, 0.2])
    effect = pooled_sites(np.array([[-0.5, 0.1, 0.4, -0.1, 0.3], errors]), 0.95)
    numbers = [effect.tau**2, effect.mean, *effect.interval, *effect.prediction]
    expected = [0.1022898132, 0.0565896770, -0.4242702379, 0.5374495919]
    np.testing.assert_allclose(numbers, [*expected, -0.9532332594, 1.0664126135], atol=1e-9)
    z = np.linspace(-2.0, 2.0, 41)
    y = np.arange(41) * 7 % 11 < 4 + 2 * z
    basis = restricted_spline(np.array([0.7]), np.quantile(z, (0.1, 0.5, 0.9)))[0]
    np.testing.assert_allclose(basis, [1.0, 0.7, 1.12119140625], atol=1e-9)
    site = ct.Predictions(expit(np.column_stack([z, -z])), 1 - y.astype(int), induced=True)
    fit = centre_curve(site, z, np.array([-1.0, 0.0, 1.0]))
    expected = [[-1.542859384, -0.1876477282, 0.3886172516]]
    expected += [[0.6402667575, 0.5335365807, 0.4358156653]]
    np.testing.assert_allclose(fit, expected, atol=1e-8)


def fisher_scoring(values, errors):
    """The REML estimate by matrices and Fisher scoring (Viechtbauer 2005), to convergence."""
    tau2, one = 1.0, np.ones((values.size, 1))
    for _ in range(10_000):
        w = np.diag(1 / (errors**2 + tau2))
        p = w - w @ one @ one.T @ w / w.sum()
        step = (values @ p @ p @ values - np.trace(p)) / np.trace(p @ p)
        moved = max(0.0, tau2 + 0.5 * step)  # whole steps may oscillate
        if abs(moved - tau2) < 1e-16:
            break
        tau2 = moved
    return tau2


@pytest.mark.parametrize("seed", range(12))
def test_against_fisher_scoring(seed):
    rng = np.random.default_rng(seed)
    errors = rng.uniform(0.1, 0.6, 3 + seed)
    values = 0.3 + (seed % 3) * 0.2 * rng.standard_normal(errors.size)
    values += errors * rng.standard_normal(errors.size)
    tau2 = fisher_scoring(values, errors)
    found = pooled_sites(np.array([values, errors]), 0.9, 0.3)
    assert found.tau**2 == pytest.approx(tau2, rel=1e-9, abs=1e-12)
    w = 1 / (errors**2 + tau2)
    mean = (w * values).sum() / w.sum()
    stretch = max(1.0, (w * (values - mean) ** 2).sum() / (errors.size - 1))
    reach = student(errors.size - 1).ppf(0.95)
    assert found.mean == pytest.approx(mean, abs=1e-8)
    half = reach * (stretch / w.sum()) ** 0.5
    assert found.interval == pytest.approx((mean - half, mean + half), abs=1e-8)
    wide = reach * (tau2 + stretch / w.sum()) ** 0.5
    assert found.prediction == pytest.approx((mean - wide, mean + wide), abs=1e-8)
    beyond = student(errors.size - 1).sf(abs(mean - 0.3) / (stretch / w.sum()) ** 0.5)
    assert found.pvalue == pytest.approx(2 * beyond, abs=1e-8)


def sites(rng, sizes, spread=0.3, slopes=0.0):
    site = np.repeat(np.arange(len(sizes)), sizes)
    shift = spread * rng.standard_normal(len(sizes))
    slope = 1 + slopes * rng.standard_normal(len(sizes))
    z = rng.normal(-1, 1.2, site.size)
    return expit(z), rng.random(site.size) < expit(shift[site] + slope[site] * z), site


def test_effects_are_those_of_each_site(rng):
    p, y, site = sites(rng, [200, 300, 150])
    found = ct.meta_analysis(p, y, by=site)
    for j in range(3):
        rows = site == j
        fit = ct.cox_recalibration(p[rows], y[rows])
        assert (found.slope.values[j], found.slope.errors[j]) == (fit.slope, fit.slope_se)
        assert found.intercept.values[j] == fit.in_the_large
        fitted = expit(np.log(p[rows] / (1 - p[rows])) + fit.in_the_large)
        variance = (fitted * (1 - fitted)).sum() / y[rows].sum() ** 2
        assert found.log_oe.values[j] == pytest.approx(np.log(y[rows].sum() / p[rows].sum()))
        assert found.log_oe.errors[j] == pytest.approx(variance**0.5, rel=1e-6)
    assert (found.sites, found.counts, found.n) == (("0", "1", "2"), (200, 300, 150), 650)
    assert found.events == tuple(int(y[site == j].sum()) for j in range(3))
    order = rng.permutation(650)
    moved = ct.meta_analysis(p[order], y[order], by=site[order])
    assert moved.slope.mean == pytest.approx(found.slope.mean, rel=1e-9)


def test_weights_and_clusters_of_sites(rng):
    p, y, site = sites(rng, [200, 300, 150])
    plain = ct.meta_analysis(p, y, by=site)
    w, one = rng.integers(1, 4, 650), rng.permutation(650)
    copied = ct.meta_analysis(np.repeat(p, w), np.repeat(y, w), by=np.repeat(site, w))
    weighted = ct.meta_analysis(p, y, by=site, weights=0.3 * w)
    for effect in ("log_oe", "intercept", "slope"):
        values = getattr(weighted, effect).values
        assert values == pytest.approx(getattr(copied, effect).values, rel=1e-6)
        assert min(getattr(weighted, effect).errors) > min(getattr(copied, effect).errors)
    p, y, site, one = (np.tile(column, 3) for column in (p, y, site, one))
    known = ct.meta_analysis(p, y, by=site, clusters=one)
    for effect in ("log_oe", "intercept", "slope"):
        assert getattr(known, effect).values == pytest.approx(getattr(plain, effect).values)
        errors = getattr(plain, effect).errors
        assert getattr(known, effect).errors == pytest.approx(errors, rel=0.15)


def test_sites_without_estimates_are_left_out_and_named(rng):
    p, y, site = sites(rng, [200, 300, 150])
    y[site == 1] = False
    found = ct.meta_analysis(p, y, by=site)
    assert (found.sites, found.n) == (("0", "2"), 350)
    assert "site 1 is left out: all outcomes are 0" in str(found)
    y[site == 2] = True
    with pytest.raises(ct.StatisticError, match="fewer than two sites have finite estimates"):
        ct.meta_analysis(p, y, by=site)
    with pytest.raises(ct.StatisticError, match="needs by="):
        ct.meta_analysis(p, y)
    with pytest.raises(ct.StatisticError, match="a cluster has rows at two sites"):
        ct.meta_analysis(p, y, by=site, clusters=np.arange(650) // 13)
    with pytest.raises(ct.StatisticError, match="puts a row at two sites"):
        ct.meta_analysis(p, y, by={"a": site, "b": site})


@pytest.mark.slow
def test_coverage_of_means_and_predictions():
    held, runs = np.zeros(3), 200
    for seed in range(runs):
        rng = np.random.default_rng([seed, 5])
        sizes = np.exp(rng.uniform(np.log(100), np.log(1000), 10)).astype(int)
        found = ct.meta_analysis(*sites(rng, sizes)[:2], by=np.repeat(np.arange(10), sizes))
        further = 0.3 * rng.standard_normal()
        inside = [
            effect.interval[0] <= truth <= effect.interval[1]
            for effect, truth in ((found.intercept, 0.0), (found.slope, 1.0))
        ]
        low, high = found.intercept.prediction
        held += [*inside, low <= further <= high]
    assert (held / runs >= 0.93 - 3 * (0.05 * 0.95 / runs) ** 0.5).all()


def centres(k, rng, n=600, tau=(0.3, 0.15)):
    """Rows of k centres whose intercepts and slopes are normal, and the next centre's."""
    z = rng.normal(-0.8, 1.0, (k, n))
    a, b = rng.normal([[0.0], [1.0]], np.array(tau)[:, None], (2, k))
    y = rng.random((k, n)) < expit(a[:, None] + b[:, None] * z)
    return expit(z).ravel(), y.ravel(), np.repeat([f"s{i:02}" for i in range(k)], n)


def test_curves_are_splines_pooled_point_by_point():
    p, y, site = centres(7, np.random.default_rng(3))
    result = ct.meta_analysis(p, y, by=site, curve=True)
    curve = result.curve
    z = np.log(curve.at / (1 - curve.at))
    np.testing.assert_allclose(np.diff(z), np.ptp(z) / (z.size - 1), rtol=1e-9)
    assert curve.sites == tuple(f"s{i:02}" for i in range(7))
    point = 20  # by truncated powers, and a general optimiser
    estimates = []
    for name in curve.sites:
        x, events = np.log(p[site == name] / (1 - p[site == name])), y[site == name]
        k = np.quantile(x, (0.1, 0.5, 0.9))

        def basis(t, k=k):
            ratio = (k[2] - k[0]) / (k[2] - k[1])
            cubes = [np.where(t > knot, t - knot, 0.0) ** 3 for knot in k]
            bent = cubes[0] - ratio * cubes[1] + (ratio - 1.0) * cubes[2]
            return np.stack([np.ones_like(t), t, bent / (k[2] - k[0]) ** 2], axis=-1)

        def loss(beta, x=x, events=events, basis=basis):
            eta = basis(x) @ beta
            return np.logaddexp(0.0, eta).sum() - eta[events].sum()

        beta = minimize(loss, [0.0, 1.0, 0.0], method="BFGS", options={"gtol": 1e-6}).x
        v = expit(basis(x) @ beta) * (1 - expit(basis(x) @ beta))
        covariance = np.linalg.inv((basis(x) * v[:, None]).T @ basis(x))
        at = basis(z[point])
        estimates.append((at @ beta, np.sqrt(at @ covariance @ at)))
    effect = pooled_sites(np.array(estimates).T, 0.95)
    np.testing.assert_allclose(curve.curves[:, point], expit([e for e, _ in estimates]), atol=1e-5)
    assert curve.mean[point] == pytest.approx(expit(effect.mean), abs=1e-5)
    assert curve.interval[point] == pytest.approx(expit(effect.interval), abs=1e-5)
    assert curve.prediction[point] == pytest.approx(expit(effect.prediction), abs=1e-5)
    assert any("fewer than 20 sites" in note for note in result.notes)
    p, y, site = centres(20, np.random.default_rng(3), n=200)
    many = ct.meta_analysis(p, y, by=site, curve=True)
    assert not any("fewer than 20 sites" in note for note in many.notes)


def test_sites_without_a_curve_are_named_and_few_are_refused():
    p, y, site = centres(6, np.random.default_rng(5), n=200)
    p[site == "s03"] = np.where(p[site == "s03"] > 0.4, 0.6, 0.2)  # two values: no knots
    result = ct.meta_analysis(p, y, by=site, curve=True)
    assert len(result.sites) == 6
    assert "s03" not in result.curve.sites
    assert any("site s03 has no curve" in note for note in result.notes)
    few = np.isin(site, ["s00", "s01", "s02", "s03", "s04"])
    with pytest.raises(ct.StatisticError, match=r"needs 5 sites .* there are 4: site s03"):
        ct.meta_analysis(p[few], y[few], by=site[few], curve=True)
    with pytest.raises(ct.StatisticError, match="curve=True"):
        ct.meta_analysis(p, y, by=site).plot(effect="curve")
