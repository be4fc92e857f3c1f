"""The search through segments: reference values, a slow twin, invariances and refusals."""

import warnings
from dataclasses import replace
from datetime import date
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import brentq

import caltest as ct
from caltest._base.features import as_features, holds
from caltest.inference.lattice import (
    LATTICE_SHIFTS,
    OF_NORMAL,
    CutFeature,
    EvidenceLaw,
    EvidenceOfLanes,
    Lattice,
    Scan,
    log_moment,
    tilted,
)
from caltest.inference.segments import found_differences, interval, short_list, strong_error

FEW = {"n_resamples": 199, "rng": 0}


def weyl(n, root):
    return np.arange(1, n + 1) * np.sqrt(root) % 1.0


def twelve():
    """Return 12 rows, with a number and a level."""
    p = [0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35]
    y = [0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1]
    return p, y, {"x": [1, 5, 6, 2, 1, 2, 4, 1, 5, 6, 3, 5], "g": [*"AABBABABBAAB"]}


def mixed(n=240):
    """Return n rows without a generator: ties, missing cells, levels, two segments wrong."""
    x, u, v = weyl(n, 2), weyl(n, 3), weyl(n, 5)
    site = np.where(weyl(n, 7) < 0.5, "A", np.where(weyl(n, 7) < 0.8, "B", "C"))
    z = np.where(weyl(n, 11) < 0.15, np.nan, np.floor(6 * v))
    p = np.round(0.1 + 0.3 * x + 0.3 * u, 2)
    y = (weyl(n, 13) < tilted(p, 1.6 * (site == "B") - 2.2 * (x > 0.75))).astype(float)
    return p, y, {"x": x, "z": z, "site": site}, 1.0 + np.arange(n) % 3


def scan_of(p, features, w=None, min_rows=30, depth=2):
    columns = as_features({"prediction": p, **features}, len(p)).columns
    lattice = Lattice.of([CutFeature.of(c, min_rows) for c in columns], len(p), min_rows, depth)
    return Scan.of(lattice, np.asarray(p, float), np.ones(len(p)) if w is None else w)


def gains_of(scan, y):
    return scan.evidence(y) + scan.lattice.price


def test_reference_values_of_twelve_rows():
    p, y, features = twelve()
    scan = scan_of(p, features, min_rows=3)
    assert scan.lattice.size == 92
    found = ct.segment_search(p, y, features, min_rows=3, n_resamples=4096, alpha=0.2)
    assert (found.null, found.n_resamples) == ("exact", 0)
    assert found.pvalue == pytest.approx(0.1155299189, abs=1e-9)  # enumerated below
    first = found.segments[0]
    # gain and evidence by a slow program of the 92 segments; the p-value is enumerated below
    assert first.name == "x > 2"
    values = first.gain, first.price, first.evidence
    assert values == pytest.approx((4.4000396462, np.log(18), 1.5096678883), abs=1e-8)
    # all label vectors once more, one by one
    p, mass, tail = np.array(p), 0.0, 0.0
    for labels in product((0, 1), repeat=12):
        chance = np.prod(np.where(labels, p, 1 - p))
        mass += chance
        evidence = (gains_of(scan, np.array(labels)) - scan.lattice.price).max()
        tail += chance * (evidence >= first.evidence - 1e-9)
    assert (mass, tail) == pytest.approx((1.0, found.pvalue), abs=1e-9)


# Numbers of the segments of mixed rows: by a slow program that lists all masks of rows, apart from
# the package; folds are rows mod 5, weights 1, 2, 3 in turn.
BAR = 2.5


def test_segments_of_mixed_rows_are_those_of_the_slow_program():
    p, y, features, _ = mixed()
    scan = scan_of(p, features)
    assert scan.lattice.size == 292
    assert sum(len(scan.lattice.conditions(s)) == 1 for s in range(292)) == 92
    assert scan.lattice.price.sum() == pytest.approx(1235.9028553565, abs=1e-7)
    assert gains_of(scan, y).sum() == pytest.approx(593.9082285704, abs=1e-7)


@pytest.mark.parametrize(
    ("place", "site", "rows", "gain", "shift", "mean", "low", "high"),
    [
        (0, "B", 56, 16.8495596172, 1.6911168377, 0.3742857143, 0.1404942932, 0.5440818492),
        (1, "A", 32, 15.9739833931, -2.8249736217, -0.4528125, -0.5144980276, -0.1882021132),
    ],
)
def test_listed_segments_are_those_of_the_slow_program(
    place, site, rows, gain, shift, mean, low, high
):
    p, y, features, _ = mixed()
    scan = scan_of(p, features)
    gains, price = gains_of(scan, y), scan.lattice.price
    listed = short_list(scan, y, gains - price, BAR)
    assert len(listed) == 2
    s = listed[place]
    members = scan.lattice.rows(s)
    assert scan.lattice.conditions(s)[1] == ("site", "level", None, None, site)
    assert members.sum() == rows
    assert gains[s] == pytest.approx(gain, abs=1e-8)
    assert price[s] == pytest.approx(4.2766661190, abs=1e-8)
    found = interval(p[members], scan.w[members], y[members], BAR + price[s], 1.0)
    assert found == pytest.approx((mean, low, high, shift), abs=1e-8)


def test_a_segment_that_needs_one_condition_is_listed_by_it(monkeypatch):
    p, y, features, _ = mixed()
    scan = scan_of(p, features)
    monkeypatch.setattr("caltest.inference.segments.ADDED_EVIDENCE", 2.5)
    listed = short_list(scan, y, gains_of(scan, y) - scan.lattice.price, BAR)
    assert scan.lattice.name(listed[1]) == "x > 0.75"


def test_the_error_of_strong_segments_is_that_of_the_slow_program():
    p, y, features, _ = mixed()
    error, its_error = strong_error(scan_of(p, features), y, np.arange(240), BAR)
    assert error == pytest.approx(0.035981252636, abs=1e-10)
    assert its_error == pytest.approx(0.006527170175, abs=1e-10)


def test_the_best_segment_of_weighted_rows_is_that_of_the_slow_program():
    p, y, features, w = mixed()
    scan = scan_of(p, features, w)
    gains, price = gains_of(scan, y), scan.lattice.price
    s = int(np.argmax(gains - price))
    assert scan.lattice.conditions(s)[1] == ("site", "level", None, None, "A")
    assert scan.dispersion[s] == pytest.approx(2.3153295858, abs=1e-8)
    assert gains[s] == pytest.approx(13.8265090771, abs=1e-8)
    members = scan.lattice.rows(s)
    of_members = p[members], w[members], y[members]
    mean, low, high, _ = interval(*of_members, BAR + price[s], scan.dispersion[s])
    assert (mean, low, high) == pytest.approx((-0.45359375, -0.5156188141, -0.1625991684), abs=1e-8)


def test_the_likelihood_falls_alike_to_both_ends_of_an_interval():
    """Sure predictions that are wrong both ways: the drop of l is level ψ at both ends."""
    p, y, w = np.tile([0.1, 0.9], 8), np.tile([1, 0, 0, 1], 4), np.tile([1.0, 2.0], 8)
    mean, low, high, shift = interval(p, w, y, 1.5, 1.0)

    def shift_with(mean_residual):
        return brentq(lambda t: w @ (tilted(p, t) - p) / w.sum() - mean_residual, -9, 9)

    def log_likelihood(t):
        return t * (w @ y) - w @ np.log1p(p * np.expm1(t))

    assert shift_with(mean) == pytest.approx(shift, abs=1e-8)
    fit = tilted(p, shift)
    psi = w**2 @ (y - fit) ** 2 / (w**2 @ (fit * (1 - fit)))
    assert psi > 2
    for end in (low, high):
        drop = log_likelihood(shift) - log_likelihood(shift_with(end))
        assert drop == pytest.approx(1.5 * psi)


# ------------------------------------------------------------------------------- a slow twin
def conditions(x, min_rows, parts):
    """Return the masks of all conditions on a column, and the number of its cells."""
    missing = np.array([v is None or v != v for v in x])
    if isinstance(x[~missing][0], str):
        names, counts = np.unique(x[~missing].astype(str), return_counts=True)
        kept = sorted((-c, name) for name, c in zip(names, counts, strict=True) if c >= min_rows)
        kept = [name for _, name in kept[:20]]
        cells = [x == name for name in kept] + [~np.isin(x.astype(str), kept) & ~missing, missing]
        cells = [cell for cell in cells if cell.any()]
        return cells, len(cells)
    x = x.astype(float)
    known = np.sort(x[~missing])
    cuts = np.unique(known)[:-1]
    if cuts.size >= parts:
        at = [int(np.ceil(k * known.size / parts)) - 1 for k in range(1, parts)]
        cuts = np.array([v for v in np.unique(known[at]) if v < known[-1]])
    ends = [-np.inf, *cuts, np.inf]
    stretches = [(x > a) & (x <= b) for a, b in combinations(ends, 2)]
    kept = [m for m in [*stretches, missing] if m.any() and not m.all()]
    return kept, len(ends) - 1 + int(missing.any())


def slow(p, w, y, columns, min_rows):
    """Return {rows of a segment: (gain, price)}, from the definitions, one segment at a time."""
    alone = [conditions(x, min_rows, 8) for x in columns]
    paired = [conditions(x, min_rows, 4) for x in columns]
    families = [(1, k, masks) for masks, k in alone]
    for (a, k), (b, m) in combinations(paired, 2):
        families.append((2, k * m, [u & v for u, v in product(a, b)]))
    most = len(p) - min_rows
    large = [(d, k, [m for m in masks if min_rows <= m.sum() <= most]) for d, k, masks in families]
    large = [family for family in large if family[2]]
    found = []
    for depth, cells, masks in [(0, 1, [np.ones(len(p), bool)]), *large]:
        count = max(1, sum(d == depth for d, _, _ in large))
        for m in masks:
            v = p[m] * (1 - p[m])
            phi = (w[m] ** 2 @ v) / (w[m] @ v)
            lines = [
                t * (w[m] @ y[m]) - w[m] @ np.log(1 - p[m] + p[m] * np.exp(t))
                for t in LATTICE_SHIFTS
            ]
            found.append((m, max(0.0, *lines) / phi, np.log(count * cells)))
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3))])
def test_the_engine_is_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    n, min_rows = 150 + 10 * seed, 12
    x = np.round(rng.standard_normal(n), 1 + seed % 2)
    gaps = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n))
    level = rng.choice(
        np.array([*"abcdefgh"], dtype=object), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02]
    )
    level[rng.random(n) < 0.1] = None
    p = np.round(rng.beta(0.6, [3.0, 0.8, 1.0, 0.3][seed], n), 3).clip(0.001, 0.999)
    w = rng.choice([1.0, 2.5, 4.0], n) if seed % 2 else np.ones(n)
    features = {"x": x, "gaps": gaps, "level": level}
    scan = scan_of(p, features, w, min_rows)
    for _ in range(5):
        y = (rng.random(n) < rng.beta(1, 1, n)).astype(float)
        expected = slow(p, w, y, [p, *features.values()], min_rows)
        assert len(expected) == scan.lattice.size
        gains = gains_of(scan, y)
        for s, (m, gain, price) in enumerate(expected):
            np.testing.assert_array_equal(m, scan.lattice.rows(s))
            assert (gains[s], scan.lattice.price[s]) == pytest.approx((gain, price), abs=1e-10)
        largest = max(gain - price for _, gain, price in expected)
        assert scan.highest((1 - y)[None].astype(np.int64))[0] == pytest.approx(largest, abs=1e-10)


def test_a_gain_is_bounded_by_its_normal_form():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        n = rng.integers(1, 30)
        p = tilted(rng.random(n), rng.uniform(-9, 9)).clip(1e-9, 1 - 1e-9)
        y = rng.random(n) < rng.random()
        gain = max(t * y.sum() - log_moment(p, t).sum() for t in LATTICE_SHIFTS)
        normal = 0.5 * (y.sum() - p.sum()) ** 2 / (p * (1 - p)).sum()
        assert gain <= OF_NORMAL * normal + 1e-9


# -------------------------------------------------------------------- invariances and equivalences
def data(n=600, seed=0, shift=1.5):
    rng = np.random.default_rng(seed)
    age, site = rng.integers(20, 90, n).astype(float), rng.choice([*"ABC"], n, p=[0.5, 0.3, 0.2])
    z = np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n))
    p = rng.uniform(0.1, 0.6, n)
    y = (rng.random(n) < tilted(p, shift * (age > 70))).astype(int)
    return p, y, {"age": age, "site": site, "z": z}


def described(found, names=True):
    return [
        ((s.name,) if names else ()) + (s.n, *np.round([s.gain, s.low, s.high, s.price], 9))
        for s in found.segments
    ]


def test_what_does_not_matter_changes_nothing():
    p, y, f = data()
    expected = described(ct.segment_search(p, y, f, **FEW))
    assert expected[0][0].startswith("age > ")
    order = np.random.default_rng(1).permutation(len(p))
    # bars are simulated: rows in another order have other draws
    moved = ct.segment_search(p[order], y[order], {k: v[order] for k, v in f.items()}, **FEW)
    assert [s.name for s in moved.segments] == [s[0] for s in expected]
    assert [s.gain for s in moved.segments] == pytest.approx([s[2] for s in expected], abs=1e-8)
    same = {
        "copies and constants": f | {"copy": f["age"], "constant": np.ones(len(p))},
        "other names of levels": f | {"site": np.where(f["site"] == "A", "Z", f["site"])},
    }
    for words, features in same.items():
        assert described(ct.segment_search(p, y, features, **FEW)) == expected, words
    found = ct.segment_search(p, y, f | {"age": np.exp(f["age"] / 9)}, **FEW)
    assert described(found, names=False) == [row[1:] for row in expected]
    for scale in (0.1, 3.0):
        w = scale * (1 + np.arange(len(p)) % 3)
        found = ct.segment_search(p, y, f, weights=w, **FEW)
        assert found.effective_n < len(p)
        assert described(found) == described(ct.segment_search(p, y, f, weights=w / scale, **FEW))
    zero = np.concatenate([np.ones(len(p)), np.zeros(50)])
    longer = {k: np.concatenate([v, v[:50]]) for k, v in f.items()}
    rows = np.append(p, p[:50]), np.append(y, 1 - y[:50])
    assert described(ct.segment_search(*rows, longer, weights=zero, **FEW)) == expected


def test_forms_of_features_are_alike(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    p, y, f = data()
    f["day"] = np.datetime64("2020-01-01") + np.arange(len(p))
    f["sex"] = np.arange(len(p)) % 3 == 0
    frame = pd.DataFrame(f)
    expected = ct.segment_search(p, y, frame, **FEW)
    whole = frame.assign(p=p, label=y)
    whole.to_csv(tmp_path / "rows.csv", index=False)
    masked = f | {"z": np.ma.masked_invalid(f["z"])}
    nullable = frame.convert_dtypes().assign(site=frame["site"].astype("category"))
    for features in (f, pl.from_pandas(frame), masked, nullable, {k: [*v] for k, v in f.items()}):
        assert ct.segment_search(p, y, features, **FEW).segments == expected.segments
    named = ct.segment_search(whole, "label", [*f], **FEW)
    from_file = ct.read_predictions(tmp_path / "rows.csv", features="*")
    some = ct.read_predictions(tmp_path / "rows.csv", features="age, s*")
    assert [c.name for c in some.features.columns] == ["age", "site", "sex"]
    assert named.segments == ct.segment_search(from_file, **FEW).segments == expected.segments
    ages = from_file.take(np.array([3, 1])).features.by_name["age"].values
    assert ages.tolist() == [*f["age"][[3, 1]]]
    rows = ct.Predictions.of(p, y, features=frame)
    assert ct.SegmentSearch.from_json(expected.to_json()) == expected
    assert ct.segment_search(rows, workers=2, **FEW) == expected
    assert expected.members(0, frame).sum() == expected.segments[0].n
    with pytest.raises(ct.StatisticError, match="does not take features"):
        ct.calibration_test(rows)


def test_evidence_above_the_bar_is_a_small_p_value():
    for seed, shift in product(range(4), (0.0, 0.7, 1.5)):
        found = ct.segment_search(*data(300, seed, shift), **FEW)
        for s in (*found.segments, *found.strongest, found.whole):
            assert (s.evidence > found.bar) == (s.pvalue <= found.alpha)
            assert s.low - 1e-12 <= s.difference <= s.high + 1e-12
            assert s.at_least == (min(abs(s.low), abs(s.high)) if s.on_average else 0.0)
        assert all(s.pvalue <= 0.05 for s in found.segments)
        assert (found.pvalue <= 0.05) == bool(found.segments)
        early = ct.segment_search(*data(300, seed, shift), early_stop=True, **FEW)
        if early.ended == "early":
            assert early.pvalue == pytest.approx(20 / (early.n_resamples + 1))
            assert early.n_resamples < 199


def test_intervals_of_alike_predictions_leave_zero_out():
    for seed in range(6):  # errors cannot cancel where all predictions are one: ψ = 1
        _, _, f = data(400, seed)
        y = np.random.default_rng(seed).random(400) < np.where(f["age"] > 70, 0.55, 0.3)
        found = ct.segment_search(np.full(400, 0.3), y, f, **FEW)
        assert all(s.on_average and s.at_least > 0.0 for s in found.segments)
        assert "None is listed" not in str(found)
        assert found.segments


def test_the_reach_is_found_as_often_as_it_says(monkeypatch):
    rng = np.random.default_rng(5)
    n = 2000
    p, f = rng.uniform(0.02, 0.5, n), {"x": rng.permutation(n), "u": rng.random(n)}
    scan = scan_of(p, f)
    whole = found_differences(scan, 2.5)
    monkeypatch.setattr("caltest.inference.segments.ROWS_SAMPLED", 500)
    assert np.array(found_differences(scan, 2.5)) == pytest.approx(np.array(whole), rel=0.02)
    for share, gap in whole:
        m = rng.permutation(n) < share * n
        shifts = np.linspace(0, 4, 400)
        means = np.array([tilted(p[m], t).mean() - p[m].mean() for t in shifts])
        t = np.interp(gap, means, shifts)
        y = rng.random((2000, n)) < np.where(m, tilted(p, t), p)
        events = y[:, m].sum(axis=1)[:, None]
        k = np.array([log_moment(p[m], s).sum() for s in LATTICE_SHIFTS])
        power = ((events * LATTICE_SHIFTS - k).max(axis=1) > 2.5 + np.log(3 * 8)).mean()
        assert 0.7 < power < 0.95


def test_one_wrong_cell_and_certain_predictions_make_no_nan():
    p = np.tile([0.0, 1.0, 0.3, 0.9999999], 40)
    y = np.tile([0, 1, 1, 0], 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ct.segment_search(p, y, {"x": np.arange(160), "g": [*"ab"] * 80}, **FEW)
        x = {"x": np.arange(180) // 3 % 7}
        sure = ct.segment_search([0.0, 1.0, 0.5] * 60, [0, 1, 0, 0, 1, 1] * 30, x, **FEW)
    assert np.isfinite([v for s in found.segments for v in (s.low, s.high, s.gain, s.shift)]).all()
    assert sure.pvalue > 0.05
    with pytest.warns(ct.DoubtfulInputWarning, match="all probabilities are 0 or 1"):
        sure = ct.segment_search([0.0, 1.0] * 60, [0, 1] * 60, {"x": [*range(7)] * 17 + [1]}, **FEW)
    assert (sure.null, sure.pvalue, sure.segments) == ("exact", pytest.approx(1.0), ())
    broken = ct.segment_search([0.0, 1.0, 0.5] * 60, [1, 1, 0] * 60, {"x": np.arange(180)}, **FEW)
    assert (broken.impossible, "probability exactly 0" in str(broken)) == (60, True)
    assert {s.low <= s.difference <= s.high for s in broken.segments} == {True}


def test_clusters_widen_intervals():
    p, y, f = data(300)
    cluster = np.repeat(np.arange(300), 4)
    rows = {k: np.repeat(v, 4) for k, v in f.items()}
    apart = ct.segment_search(p, y, f, **FEW)
    together = ct.segment_search(np.repeat(p, 4), np.repeat(y, 4), rows, clusters=cluster, **FEW)
    assert (together.n_clusters, together.clusters.dependence) == (300, 1.0)
    a, b = apart.segments[0], together.segments[0]
    # four copies tell what one does
    assert (b.gain, b.high - b.low) == pytest.approx((a.gain, a.high - a.low), rel=0.3)
    with pytest.raises(ct.StatisticError, match="too few clusters"):
        ct.segment_search(p, y, f, clusters=np.arange(300) % 4)


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.2])
def test_evidence_is_above_the_bar_where_its_p_value_is_at_most_alpha(alpha):
    law = EvidenceLaw((np.arange(999.0), np.full(999, 5.0)), "redraw", 999, "complete")
    bar = law.bar(alpha)
    assert bar == pytest.approx(999 - 1000 * alpha, abs=1e-6)
    assert law.pvalue(bar + 0.5) <= alpha < law.pvalue(bar - 0.5)
    assert law.bar(1e-4) == np.inf


def test_a_learner_teaches_one_more_column():
    rng = np.random.default_rng(2)
    x, p = rng.standard_normal((1600, 20)), np.full(1600, 0.4)
    x[::7, 3] = np.nan
    y = rng.random(1600) < tilted(p, 0.25 * np.nansum(x, axis=1))

    class Linear:
        def fit(self, X, r):
            self.beta = np.linalg.lstsq(X, r, rcond=None)[0]

        def predict(self, X):
            return X @ self.beta

    found = ct.segment_search(p, y, x, learner=Linear(), **FEW)
    assert (found.learner, found.n) == ("Linear", 800)
    assert found.segments[0].conditions[0][0] == "learner"
    assert found == ct.segment_search(p, y, x, learner=Linear(), **FEW)
    assert "p depends on this split" in str(found)
    with pytest.raises(ct.StatisticError, match="must have fit"):
        ct.segment_search(p, y, x, learner=Linear)
    Linear.fit = lambda self, X, r: np.linalg.inv(0.0 * X.T @ X)
    with pytest.raises(ct.StatisticError, match="Linear failed: Singular matrix"):
        ct.segment_search(p, y, x, learner=Linear())


N = 100
WRONG = {
    "no features": ({"features": None}, "needs features"),
    "another number of rows": ({"features": {"x": np.arange(99)}}, "'x' has 99 values"),
    "free text": ({"features": {"t": [f"name {i}" for i in range(N)]}}, "leave it out, or group"),
    "infinite": ({"features": {"x": np.r_[np.inf, np.arange(N - 1)]}}, "'x' is inf in row 0"),
    "complex": ({"features": {"x": np.arange(N) * 1j}}, "'x' is complex"),
    "nested": ({"features": {"x": [[1, 2]] * N}}, "'x' is nested"),
    "nested objects": ({"features": {"x": [{}, *range(N - 1)]}}, "'x' is nested in row 0"),
    "three dimensions": ({"features": np.zeros((N, 2, 2))}, "of shape"),
    "no column": ({"features": {}}, "holds no column"),
    "constant": ({"features": {"x": np.ones(N)}}, "no column is left to search: x"),
    "depth": ({"max_depth": 3}, "max_depth must be"),
    "few rows": ({"min_rows": 60}, "need 120 rows, and there are 100: pass more, or"),
    "alpha": ({"n_resamples": 9}, "take at least 19"),
    "subgroups": ({"by": np.arange(N) % 2}, "does not take by"),
    "no such fact": ({"feature": 1}, "did you mean features"),
    "no such column": ({"features": ["x"]}, "values, but there are"),
    "lens": ({"lens": "TopK"}, "lens must be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_are_told_what_to_do(case):
    options, message = WRONG[case]
    p = np.linspace(0.2, 0.8, N)
    given = {"features": {"x": np.arange(N) % 7}} | options
    with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError, TypeError), match=message):
        ct.segment_search(p, np.arange(N) % 3 == 0, **given)


def test_tallies_and_leaks_are_named():
    p, y, f = data(300)
    with pytest.raises(ct.StatisticError, match="needs the rows"):
        ct.segment_search(ct.Tally.of(p, y), features=f)
    with pytest.warns(ct.DoubtfulInputWarning, match="outcomes follow from 'paid'"):
        ct.segment_search(p, y, f | {"paid": y}, **FEW)
    table = f | {"p": p, "y": y, "paid": y, "called": np.where(p > 0.5, 2, 1)}
    left = "paid (outcomes follow from it)", "called (the predicted class)"
    assert ct.segment_search(table, "y", "*", **FEW).dropped[-2:] == left
    found = ct.segment_search(p, y, f, **FEW)
    assert "interval  evidence        p\n" in str(found)
    assert f" to {found.segments[0].high:.3f}      17.5  ≤ 0.005\n" in str(found)
    with pytest.raises(ct.StatisticError, match="there is no number 7"):
        found.members(7, f)
    with pytest.raises(ct.StatisticError, match="no column 'age'"):
        found.members(0, {"z": f["z"]})
    with pytest.raises(ct.StatisticError, match="'age' holds text"):
        found.members(0, {"age": [*"ab"]})


def test_conditions_say_what_they_select():
    n = 400
    day = np.arange(n) % 200
    f = {
        "day": [None if i % 9 == 0 else date(2020, 1, 1 + i % 28) for i in range(n)],
        "level": [
            None if i % 8 == 0 else "abcdefghij"[i % 10] if i % 4 else f"r{i % 80}"
            for i in range(n)
        ],
        "small": day / 1e4,
    }
    scan = scan_of(np.linspace(0.1, 0.9, n), f, min_rows=20)
    columns = as_features({"prediction": np.linspace(0.1, 0.9, n), **f}, n).by_name
    kinds = set()
    for s in range(1, scan.lattice.size):
        within = np.ones(n, bool)
        for condition in scan.lattice.conditions(s):
            kinds.add(condition[1])
            within &= holds(condition, columns[condition[0]])
            days = [end for end in condition[2:4] if condition[1] == "date" and end]
            assert all(len(day) == len("2020-01-01") for day in days)
        np.testing.assert_array_equal(within, scan.lattice.rows(s))
    assert kinds == {"number", "date", "level", "other", "missing"}


@pytest.fixture(scope="module")
def searched():
    """Rows with features, and what is found in them."""
    p, y, f = data()
    rows = ct.Predictions.of(p, y, features=f, by=f["site"])
    return rows, ct.segment_search(p, y, f, n_resamples=199, rng=0)


def test_an_audit_has_a_row_of_segments(searched):
    rows, found = searched
    row = ct.audit(rows, n_resamples=199, rng=0).rows[-1]
    assert row.lens == "OneVsRest(1) segments"
    assert row.question == "is each segment right?"
    assert row.aspect == "segments"
    assert row.search == found
    assert row.pvalue == found.pvalue
    assert row.worst == found.segments[0].name
    assert row.test.estimate == abs(found.segments[0].difference)
    assert found.gain_in_words in row.detail


def test_an_audit_rejects_all_rows_as_a_segment():
    p, y, f = data()
    row = ct.audit(p, y, features={"z": f["z"]}, n_resamples=199, rng=0).rows[-1]
    assert row.verdict == ct.Finding.MISCALIBRATED  # all rows are, whatever z knows


def test_a_report_shows_the_search_of_its_audit(searched):
    rows, found = searched
    page = ct.report(rows, n_resamples=199, rng=0)
    (where,) = (section for section in page.sections if section.key == "where")
    assert where.results[0] is page.audit.rows[-1].search  # one search serves both
    assert where.results[0].segments == found.segments
    assert found.gain_in_words in page.to_markdown()


def test_max_t_takes_no_segments(searched):
    rows, _ = searched
    with pytest.raises(ct.StatisticError, match="use adjust='holm'"):
        ct.audit(rows, adjust="max-T")


def test_the_command_line_searches(tmp_path, run):
    p, y, f = data()
    rows = enumerate(zip(p, y, f["age"], f["site"], strict=True))
    at = "2024-10-01T{:02}:{:02}Z".format
    lines = [
        f"{a:.6f},{b},{c:g},{s},{10 + 3 * i},name {i},{at(i // 60, i % 60)},{i % 7},1"
        for i, (a, b, c, s) in rows
    ]
    path = tmp_path / "rows.csv"
    path.write_text("p,label,age,site,number,who,ts,ref_loss,one\n" + "\n".join(lines) + "\n")
    for options, code, words in (
        ([], 0, "3 columns and the prediction"),
        ([], 0, "left out number, who, ts (looks like an identifier or date)"),
        (["--features", "age,number"], 0, "2 columns and the prediction"),
        (["--features", "who"], 2, "'who' has 600 different texts in 600 rows, so it is a name"),
        (["--features", "age", "--fail-on-miscalibration"], 1, "1 column and the prediction"),
        (["--features", "sit*", "--max-depth", "1", "--json"], 0, '"columns": ['),
        (["--features", "sex"], 2, "there is no column 'sex': the columns are p, label, age"),
        (["--min-rows", "400"], 2, "need 800 rows, and there are 600"),
        (["--max-depth", "3"], 2, "1<=x<=2"),
        (["--weights", "age", "--features", "age"], 0, "features from age"),
        (
            ["--features", "label"],
            2,
            "label is the label or a prediction, which cannot be a feature",
        ),
    ):
        status, out, error = run("segments", path, "--n-resamples", 99, *options)
        assert (status, words in " ".join((out + error).split())) == (code, True), options
    assert "OneVsRest(1) segments" in run("audit", path, "--features", "age")[1]
    said = run("audit", path)[1]
    assert "Not searched for segments: age, site, ref_loss. Run: caltest segments" in said
    assert f"Run: caltest segments {path}" in said
    assert "may be a feature that the model lacks" in " ".join(said.split())
    assert run("plot", path, "--kind", "forest", "-o", "f.svg")[2].endswith(
        " -o f.svg --by COLUMN\n"
    )


def leaking(rng, n=600):
    """Return calibrated predictions, outcomes, and features of which some tell the outcome."""
    p = rng.uniform(0.05, 0.6, n)
    y = rng.random(n) < p
    nearly = y ^ (rng.random(n) < 0.005)
    honest = {
        "age": rng.normal(60, 9, n),
        "sex": rng.choice(["f", "m"], n),
        "dose": p + rng.normal(0, 0.1, n),
    }
    leaks = {
        "status": np.where(nearly, "closed", "open"),
        "loss": np.where(y, rng.uniform(5, 9, n), rng.uniform(0, 4, n)),
        "died_on": np.where(y, rng.uniform(0, 900, n), np.nan),
        "code": np.where(y, rng.choice([2, 5, 7], n), rng.choice([1, 3, 6], n)),
    }
    return p, y, honest, leaks


def test_columns_from_which_outcomes_follow_are_left_out_where_nobody_names_columns(rng):
    p, y, honest, leaks = leaking(rng)
    frame = {"p": p, "y": y, **honest, **leaks}
    found = ct.segment_search(frame, "y", features="*", n_resamples=99, rng=1)
    assert {*found.columns} == {"prediction", *honest}
    assert {*found.dropped} == {f"{name} (outcomes follow from it)" for name in leaks}
    assert any("left out: " in note for note in found.notes)
    assert found.pvalue > 0.01


@pytest.mark.parametrize("leak", ["status", "loss", "died_on", "code"])
def test_a_named_column_from_which_outcomes_follow_is_doubted(leak, rng):
    p, y, honest, leaks = leaking(rng)
    named = {**honest, leak: leaks[leak]}
    with pytest.warns(ct.DoubtfulInputWarning, match=f"outcomes follow from '{leak}'"):
        ct.segment_search(p, y, features=named, n_resamples=99, rng=1)


def test_a_strong_feature_of_a_sharp_model_is_searched(rng):
    x = rng.normal(0, 12, 800)
    p = 1.0 / (1.0 + np.exp(-x))
    frame = {"p": p, "y": rng.random(800) < p, "x": x, "side": x > 0, "z": rng.normal(x, 3)}
    found = ct.segment_search(frame, "y", features="*", n_resamples=99, rng=1)
    assert not [name for name in found.dropped if "outcomes follow" in name]


def test_a_step_on_the_way_to_the_outcome_is_no_feature():
    rng = np.random.default_rng(6)
    n = 6000
    p_click = rng.beta(1.0, 20.0, n)
    p = p_click * rng.beta(3.0, 6.0, n)
    clicked = rng.random(n) < p_click
    bought = clicked & (rng.random(n) < p / p_click)
    paid = np.where(bought | (clicked & (rng.random(n) < 0.2)), rng.gamma(2.0, 9.0, n), 0.0)
    age = rng.integers(18, 90, n)
    table = {"p": p, "y": bought * 1, "clicked": clicked * 1, "paid": paid, "age": age}
    rows = ct.read_predictions(table, features="*")
    result = ct.segment_search(rows, n_resamples=99, rng=0)
    left_out = " ".join(result.dropped)
    assert "clicked (one outcome occurs at one of its values only)" in left_out
    assert "paid (" in left_out
    assert result.columns == ("prediction", "age")
    named = ct.read_predictions(table, features="clicked,age")
    with pytest.warns(ct.DoubtfulInputWarning, match="outcomes follow from 'clicked'"):
        ct.segment_search(named, n_resamples=99, rng=0)


def test_a_listed_segment_whose_interval_reaches_0_is_called_barely_so():
    p, y, features, _ = mixed()
    found = ct.segment_search(p, y, features, n_resamples=99, rng=1)
    segment = replace(found.segments[0], low=-0.1, high=0.001, evidence=found.bar + 0.1)
    barely = f"The evidence is barely above {found.bar:.1f} where the interval reaches 0"
    assert barely not in str(found)
    assert barely in " ".join(str(replace(found, segments=(segment,))).split())


def test_consequences_of_an_event_are_left_out_at_one_value_or_beyond_all_other_rows():
    rng = np.random.default_rng(8)
    n = 6000
    p = rng.beta(0.5, 12.0, n)
    y = rng.random(n) < p
    leaks = {
        "chargeback": y & (rng.random(n) < 0.6),
        "refund": np.where(y & (rng.random(n) < 0.2), "full", rng.choice(["none", "part"], n)),
        "likeness": np.where(y, rng.beta(8.0, 2.0, n), rng.beta(2.0, 9.0, n)),
    }
    table = {"p": p, "y": y * 1, "age": rng.integers(18, 90, n), **leaks}
    rows = ct.read_predictions(table, features="*")
    result = ct.segment_search(rows, n_resamples=99, rng=0)
    assert result.columns == ("prediction", "age")
    assert {name.partition(" (")[0] for name in result.dropped} == {*leaks}
    named = ct.read_predictions(table, features="refund,age")
    with pytest.warns(ct.DoubtfulInputWarning, match="outcomes follow from 'refund'"):
        ct.segment_search(named, n_resamples=99, rng=0)


def test_numbers_from_which_one_of_several_classes_follows_are_left_out():
    rng = np.random.default_rng(9)
    n = 1200
    probs = rng.dirichlet([4.5, 2.7, 3.0], n)
    home = (rng.random(n)[:, None] > np.cumsum(probs, axis=1)).sum(axis=1)
    goals, more = rng.integers(0, 3, n), rng.integers(1, 4, n)
    table = {f"p_{k}": probs[:, k] for k in range(3)} | {
        "y": home, "goals": goals + more * (home == 0), "against": goals + more * (home == 2),
        "crowd": rng.integers(0, 9, n),
    }  # fmt: skip
    rows = ct.read_predictions(table, label="y", features="*")
    result = ct.segment_search(rows, n_resamples=99, rng=0)
    assert {name.partition(" (")[0] for name in result.dropped} == {"goals", "against"}
    assert "crowd" in result.columns


@pytest.mark.parametrize("risk", [0.6, 0.8])
def test_a_value_with_mostly_events_is_a_finding_and_stays(risk):
    rng = np.random.default_rng(10)
    n = 3000
    p, ward = rng.beta(2.0, 12.0, n), rng.choice(list("abcdefgh"), n, p=[0.03, *[0.97 / 7] * 7])
    y = rng.random(n) < np.where(ward == "a", risk, p)
    rows = ct.read_predictions({"p": p, "y": y * 1, "ward": ward}, features="*")
    result = ct.segment_search(rows, n_resamples=99, rng=0)
    assert not result.dropped
    assert result.segments[0].name == "ward = a"


def test_a_place_without_events_is_a_finding_and_stays():
    rng = np.random.default_rng(7)
    n = 4000
    p, ward = rng.beta(2.0, 6.0, n), rng.integers(0, 2, n)
    y = (rng.random(n) < p) & (ward == 1)  # ward 0 reports no events
    rows = ct.read_predictions({"p": p, "y": y * 1, "ward": ward}, features="*")
    result = ct.segment_search(rows, n_resamples=99, rng=0)
    assert not any(name.startswith("ward") for name in result.dropped)
    assert any("ward" in segment.name for segment in result.segments)


def test_evidence_of_labels_side_by_side_is_that_of_label_vectors():
    p, y, features, _ = mixed()
    scan, data = scan_of(p, features), ct.Predictions.of(p, y)
    lanes = ct.RedrawLabels().drawer(data)
    vectors = scan.highest(lanes((3, 5), 7, 70))
    assert np.array_equal(EvidenceOfLanes(lanes, scan, 1.0).replicates((3, 5), 7, 70), vectors)


def test_counts_of_labels_side_by_side_are_those_of_the_rows_of_each_segment():
    p, y, features, _ = mixed()
    lattice = scan_of(p, features).lattice
    _, block = next(ct.RedrawLabels().drawer(ct.Predictions.of(p, y)).blocks((3, 5), 0, 9))
    expected = [block[lattice.rows(s)].sum(axis=0) for s in range(lattice.size)]
    assert np.array_equal(lattice.counts(block).T, expected)


def test_text_with_missing_cells_becomes_sorted_levels():
    (column,) = as_features({"site": np.array(["b", None, "a", "b"], dtype=object)}, 4).columns
    assert column.levels == ("a", "b")
    assert np.array_equal(column.values, [1.0, np.nan, 0.0, 1.0], equal_nan=True)
