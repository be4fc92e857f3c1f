"""The same test in every subgroup, and one p-value for all of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

import caltest as ct
from caltest.inference import calibration as permuted
from caltest.inference.calibration import Permutations, adaptive_strata
from caltest.inference.null import holm, max_t


@pytest.fixture
def people(rng):
    p = rng.random(300)
    sex, age = rng.choice(["F", "M"], 300), rng.integers(20, 80, 300)
    y = (rng.random(300) < np.where(sex == "F", p, np.clip(p + 0.25, 0, 1))).astype(int)
    return p, y, sex, age


def test_disjoint_subgroups_are_tested_exactly(people):
    p, y, sex, _ = people
    whole = ct.calibration_test(p, y)
    result = ct.calibration_test(p, y, by=sex)
    found = result.subgroups
    assert (found.names, found.names[found.worst]) == (("F", "M"), "M")
    assert found.tests == tuple(ct.calibration_test(p[sex == s], y[sex == s]) for s in "FM")
    assert found.adjusted == tuple(holm([t.pvalue for t in found.tests]))
    assert (found.pvalue, found.adjust) == (min(found.adjusted), "Holm")
    assert (result.estimate, result.pvalue) == (whole.estimate, whole.pvalue)


@pytest.mark.slow
def test_the_worst_has_the_error_that_is_certainly_largest():
    sizes, gaps = [40_000, 4_000, 4], [0.008, 0.03, 0.2]  # the last is large by chance only
    p = np.full(sum(sizes), 0.3)
    by = np.repeat(["many", "wrong", "few"], sizes)
    y = np.concatenate([np.arange(n) < (0.3 + gap) * n for n, gap in zip(sizes, gaps, strict=True)])
    found = ct.calibration_test(p, y.astype(int), by=by).subgroups
    assert found.names == ("few", "many", "wrong")
    few, many, wrong = found.tests
    assert max(many.pvalue, wrong.pvalue) < 1e-3
    assert found.names[found.worst] == "wrong"
    assert few.certain_error(0.05)[0] == 0.0 < many.certain_error(0.05)[0]
    # what is certain at a level is near what the exact interval has for its lower end
    low = ct.confidence_interval(p[by == "wrong"], y[by == "wrong"], side="lower", rng=1).low
    assert wrong.certain_error(0.05)[0] == pytest.approx(low, abs=2e-3)
    bounds = ct.confidence_interval(p, y.astype(int), by=by, rng=1).subgroups
    assert bounds.names[bounds.worst] == "wrong"


def test_overlapping_subgroups_share_their_draws(people):
    p, y, sex, age = people
    by = {"sex": sex, "age": age, "old": age >= 60}
    found = ct.calibration_test(p, y, ct.Kuiper(), by=by, n_resamples=199, rng=1).subgroups
    assert found.adjust == "max-T"
    quarters = [name for name in found.names if name.startswith("age=")]
    assert len(quarters) == 4
    rows = ct.Predictions.of(p, y, by=by).subgroups()
    np.testing.assert_array_equal(rows["old"], np.flatnonzero(age >= 60))
    np.testing.assert_array_equal(rows["sex=M"], np.flatnonzero(sex == "M"))
    assert sum(rows[name].size for name in quarters) == 300
    assert all(rows[name].size >= 50 for name in found.names if ", " in name)
    for name, test in zip(found.names, found.tests, strict=True):
        assert test.estimate == ct.Kuiper()(p[rows[name]], y[rows[name]])
    for test, adjusted in zip(found.tests, found.adjusted, strict=True):
        assert adjusted >= test.pvalue - 4 * max(test.pvalue_error, 0.02)


def test_small_values_of_two_sided_statistics_count_in_overlapping_subgroups(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    y[:100] = 0
    by = {"first": np.arange(400) < 250, "last": np.arange(400) >= 150}
    found = ct.calibration_test(p, y, ct.OERatio(), by=by, n_resamples=199, rng=1).subgroups
    assert found.tests[0].estimate < found.tests[0].centre
    assert found.adjusted[0] == 1 / 200


def test_subgroups_keep_their_clusters_and_refuse_in_words(people):
    p, y, sex, _ = people
    clusters = np.arange(300) // 3
    result = ct.calibration_test(p, y, by=sex, clusters=clusters, n_resamples=99, rng=1)
    assert all(t.null == "SharedRedraws()" for t in result.subgroups.tests)
    assert result.subgroups.adjust == "Holm"
    certain = np.where(sex == "F", 1.0, p)
    labels = np.where(sex == "F", 1, y)
    found = ct.calibration_test(certain, labels, ct.CoxScore(), by=sex, n_resamples=99).subgroups
    assert found.tests[0] is found.adjusted[0] is None
    assert found.adjusted[1] == found.tests[1].pvalue == found.pvalue
    assert found.notes[0].startswith("subgroup F cannot be tested: CoxScore")
    with pytest.raises(ct.StatisticError, match="no subgroup can be tested: subgroup F cannot"):
        ct.calibration_test(certain, labels, ct.CoxScore(), by={"F": sex == "F"}, n_resamples=99)


@pytest.fixture
def audits(people):
    """An audit without subgroups, and one by sex."""
    p, y, sex, _ = people
    return (ct.audit(p, y, by=by, rng=0, n_resamples=199) for by in (None, sex))


def test_an_audit_asks_every_subgroup(people, audits):
    p, y, sex, _ = people
    plain, report = audits
    row = report.rows[-1]
    assert row.aspect == "groups"
    assert row.lens == "OneVsRest(1) by subgroup"
    assert row.pvalue == ct.calibration_test(p, y, by=sex).subgroups.pvalue
    assert [r.pvalue for r in report.rows[:-1]] == [r.pvalue for r in plain.rows]


def test_an_audit_judges_every_subgroup(people, audits):
    _, y, sex, _ = people
    _, report = audits
    groups = report.rows[-1].groups
    assert groups.findings == ("too little data", "miscalibrated")
    assert groups.adjusted[1] == report.rows[-1].adjusted
    assert groups.observed == pytest.approx([y[sex == s].mean() for s in "FM"])
    assert ct.AuditReport.from_json(report.to_json()).rows[-1].groups == groups


def test_an_audit_shows_its_subgroups(people, audits):
    p, y, _, _ = people
    _, report = audits
    groups = report.rows[-1].groups
    worst = groups.tests[1]
    shown = f"M too low: error {worst.shown_estimate}, noise floor {worst.shown_floor}, p "
    assert f"1 of 2 is miscalibrated by its adjusted p ({shown}" in " ".join(str(report).split())
    lines = [line for line in str(report).split("\n") if line.endswith(groups.findings)]
    assert [line.split()[0] for line in lines[-2:]] == ["F", "M"]
    assert "| subgroup |" in report.to_markdown()
    assert report.observed == pytest.approx(y.mean())
    assert report.predicted == pytest.approx(p.mean())


def test_an_audit_of_one_subgroup_asks_it_as_all_rows(people):
    p, y, _, _ = people
    plain = ct.audit(p, y, rng=0, n_resamples=199)
    single = ct.audit(p, y, by=["all"] * 300, rng=0, n_resamples=199).rows[-1]
    assert (single.aspect, single.worst) == ("groups", "all")
    assert single.pvalue == plain.rows[0].pvalue


def test_notes_and_lines_of_many_subgroups_are_few(people):
    p, y, _, _ = people
    many = ct.calibration_test(p, y, by=np.arange(300) // 6).subgroups
    assert len(many.names) == 50
    assert many.alike.count(None) == 27
    (note,) = many.notes
    assert " and 15 others are calibrated as others are is not tested: only up to" in note
    assert str(replace(many, notes=("no",) * 17)).count("Note: ") == 6
    assert "\n  and 30 others, whose errors are less certain; JSON" in str(many)


def test_joint_tests_of_subgroups(people):
    p, y, sex, _ = people
    run = {"pairs": [(ct.ECE(5), None), (ct.Kuiper(), None)], "n_resamples": 199, "rng": 1}
    result = ct.joint_test(p, y, by=sex, **run)
    assert replace(result, subgroups=None) == ct.joint_test(p, y, **run)
    parts = tuple(ct.joint_test(p[sex == s], y[sex == s], **run) for s in "FM")
    adjusted = tuple(holm([part.pvalue for part in parts]))
    assert (result.subgroups.tests, result.subgroups.adjusted) == (parts, adjusted)


def ranges(p, excess, members):
    """The ranges of walks along ``p``, stratum by stratum."""
    walks = [[excess[(p <= q) & own].sum() for q in np.unique(p)] for own in members]
    return np.array([max([0, *walk]) - min([0, *walk]) for walk in walks])


def test_alike_against_all_permutations():
    p = np.repeat([0.2, 0.6], [60, 44])
    y, group = np.zeros(104, dtype=int), np.arange(104) % 2
    y[[1, 3, 5, 60, 61, 63, 65, 67]] = 1
    members = [group == 0, group == 1]
    excess = (p - y) - np.where(p == 0.2, (p - y)[:60].mean(), (p - y)[60:].mean())
    observed = ranges(p, excess, members)
    # Hypergeometric: how many of the 3 and 5 events fall among the 30 and 22 rows of group 1.
    exact = sum(
        hypergeom(60, 3, 30).pmf(a) * hypergeom(44, 5, 22).pmf(b)
        for a in range(4)
        for b in range(6)
        if walked(a - 1.5, b - 2.5) >= observed[0] - 1e-12
    )
    found = ct.calibration_test(p, y, by=group, n_resamples=20_000, rng=1).subgroups
    assert observed[0] == pytest.approx(observed[1], abs=1e-12)
    assert found.alike == (found.alike_pvalue,) * 2
    assert found.alike_pvalue == pytest.approx(exact, abs=4 * (exact / 20_000) ** 0.5)


def walked(first, second):
    return max(0, first, first + second) - min(0, first, first + second)


@pytest.mark.slow
def test_walks_of_overlapping_subgroups(rng, monkeypatch):
    p = rng.choice([0.1, 0.4, 0.8], 200)
    y = (rng.random(200) < p).astype(int)
    members = np.stack([rng.random(200) < 0.5, rng.random(200) < 0.2], axis=1)
    means = np.array([(y - p)[p == q].mean() for q in p])
    walks = Permutations.of(p, y - p, members)
    np.testing.assert_allclose(walks.observed(), ranges(p, y - p - means, members.T), atol=1e-12)
    order = rng.permutation(200)
    moved = Permutations.of(p[order], (y - p)[order], members[order])
    np.testing.assert_allclose(moved.observed(), walks.observed(), atol=1e-12)
    drawn = walks.replicates((1, 2), 0, 50)
    np.testing.assert_array_equal(walks.replicates((1, 2), 10, 5), drawn[10:15])
    own = replace(walks, row=np.arange(200), group=np.arange(200) * 0, support=np.array([200]))
    assert own.replicates((1, 2), 0, 5) == pytest.approx(0.0, abs=1e-12)  # strata keep their sums
    monkeypatch.setattr(permuted, "_walk", permuted._walk.py_func)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(walks.replicates((1, 2), 0, 3), drawn[:3])


def test_alike_compares_rows_of_predictions_that_both_have(rng, monkeypatch):
    # Groups meet at ½ only, where the truth jumps: a function of p alone, so they are alike.
    p = np.concatenate([rng.uniform(0.2, 0.5, 190), rng.uniform(0.5, 0.8, 210)])
    y, group = rng.random(400) < p + np.where(p > 0.5, 0.19, -0.19), p > 0.5
    found = ct.calibration_test(p, y, by=group, n_resamples=99, rng=1).subgroups
    assert found.alike == ()
    words = "subgroups False, True are calibrated as others are is not tested: only 0 rows"
    assert words in found.notes[0]
    # A third one lies between rows of both; strata count for it where it does.
    p = np.concatenate([p, rng.uniform(0.3, 0.7, 300)])
    part = np.repeat(["low", "high", "both"], [190, 210, 300])
    members = part[:, None] == np.array(["both", "high", "low"])
    walks = Permutations.of(p, -p, members)  # no events, no jumps
    order = np.sort(p)
    for j, own in enumerate(members.T):
        counted = 0
        for start in range(0, 700, 20):
            rows = np.isin(p, order[start : start + 20])
            a, b = p[rows & own], p[rows & ~own]
            apart = not a.size or not b.size or a.max() < b.min() or b.max() < a.min()
            counted += 0 if apart else 20
        assert walks.support[j] == counted
    y = rng.random(700) < p
    walks = Permutations.of(p, y - p, members)
    monkeypatch.setattr("caltest.inference.calibration.COMPARABLE", walks.support[0])
    found = ct.calibration_test(p, y, by=part, n_resamples=99, rng=1).subgroups
    assert np.array_equal([p is None for p in found.alike], walks.support < walks.support[0])
    apart = ", ".join(np.array(found.names)[walks.support < walks.support[0]])
    assert f"{apart} {'are' if ',' in apart else 'is'} calibrated as" in found.notes[0]


def test_strata_are_cut_where_the_outcome_jumps():
    # Of remedies/reference.py of the specification, section "alike"
    rng = np.random.default_rng(2027)
    p = rng.random(300)
    y = (rng.random(300) < np.where(p > 0.5, 0.95, 0.05)).astype(float)
    stratum = adaptive_strata(p, y)
    assert (stratum.max() + 1, (np.bincount(stratum) ** 2).sum()) == (17, 5738)
    order = rng.permutation(300)
    np.testing.assert_array_equal(adaptive_strata(p[order], y[order]), stratum[order])
    fixed = adaptive_strata(p, np.zeros(300))
    np.testing.assert_array_equal(fixed, np.argsort(np.argsort(p)) // 20)


def test_subgroups_that_meet_at_a_jump_of_the_outcome_are_alike():
    # 500 sets: .056 ± .010; strata of 20 without cuts .120. Here 100 sets
    rejected = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 1000])
        p = rng.random(1000)
        up = p > 0.5
        y = (rng.random(1000) < np.where(up, 0.95, 0.05)).astype(int)
        member = rng.random(1000) < np.where(up, 0.8, 0.2)
        walks = Permutations.of(p, y - p, np.column_stack([member, ~member]))
        rejected += min(max_t(walks.observed(), walks.replicates((seed, 1), 0, 199))) <= 0.05
    assert rejected <= 11


@pytest.mark.slow
@pytest.mark.parametrize("slope", [1.0, 0.4])
def test_size_and_power_of_alike(slope):
    rejected, runs = np.zeros(2), 400
    for seed in range(runs):
        rng = np.random.default_rng([seed, 11])
        p, chance = rng.beta(0.5, 0.5, 300), rng.random(300)
        group = (3 * (0.6 * p + 0.4 * rng.random(300))).astype(int)  # who differs in predictions
        for j, shift in enumerate((0.0, 1.0)):
            logit = slope * np.log(p / (1 - p)) + 0.5 + shift * (group == 0)
            y = chance < 1 / (1 + np.exp(-logit))
            walks = Permutations.of(p, y - p, group[:, None] == np.arange(3))
            adjusted = max_t(walks.observed(), walks.replicates((seed, 1), 0, 199))
            rejected[j] += min(adjusted) <= 0.05
    assert rejected[0] / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert rejected[1] / runs > 0.3


def test_published_by_calzone(data_dir):
    """Group B of its simulated subgroups; group A is calibrated."""
    path = data_dir / "binary" / "calzone_simulated_data_subgroup.csv"
    data = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    facts = {"by": data["subgroup_1"], "n_resamples": 199, "rng": 1}
    published = {
        **{ct.Spiegelhalter(): 27.93575, ct.ECE(10): 0.0765893},
        ct.HosmerLemeshow(ct.UniformBins(10)): 910.43858,
    }
    for statistic, value in published.items():
        found = ct.calibration_test(data["proba_1"], data["label"], statistic, **facts).subgroups
        assert found.tests[1].estimate == pytest.approx(value, rel=1e-6)
        assert found.adjusted[0] > 0.05 >= found.adjusted[1]
        assert found.alike_pvalue == 1 / 200


def three_groups(seed, n=900):
    """Predictions, a model that is wrong in one of three subgroups, labels and the subgroups."""
    rng = np.random.default_rng(seed)
    p, by = rng.beta(0.5, 0.8, n), np.array(list("abc"))[np.arange(n) % 3]
    return p, np.where(by == "b", 0.6 * p, p), (rng.random(n) < p).astype(int), by


@pytest.mark.slow
def test_comparisons_of_subgroups_are_those_of_their_rows():
    p, q, y, by = three_groups(1)
    found = ct.compare(p, q, y, by=by, n_resamples=99, rng=1)
    whole = ct.compare(p, q, y, n_resamples=99, rng=1)
    assert (found.difference, found.pvalue) == (whole.difference, whole.pvalue)
    parts = found.subgroups
    alone = [ct.compare(p[by == g], q[by == g], y[by == g], n_resamples=99, rng=1) for g in "abc"]
    own = [t.pvalue for t in parts.tests]
    assert (own, parts.adjusted) == ([t.pvalue for t in alone], tuple(holm(own)))
    assert parts.names[parts.worst] == "b"
    assert ct.compare(ct.Predictions.of(p, y, by=by), ct.Predictions.of(q, y, by=by)).subgroups
    with pytest.raises(ct.StatisticError, match="compare_models does not take by"):
        ct.compare_models({"a": p, "b": q, "c": p}, y, by=by)
    with pytest.raises(ct.StatisticError, match="two models on the same rows"):
        ct.compare(p, q, y, by=by, labels_b=y, as_is=True)
    with pytest.raises(ct.InvalidPredictionsError, match="different by"):
        ct.compare(ct.Predictions.of(p, y, by=by), ct.Predictions.of(q, y))


def test_intervals_of_subgroups_cover_together():
    _, q, y, by = three_groups(2)
    found = ct.confidence_interval(q, y, by=by, n_resamples=999, rng=1)
    plain = ct.confidence_interval(q, y, n_resamples=999, rng=1)
    assert (found.low, found.high) == (plain.low, plain.high)
    own = {"level": 1 - 0.05 / 3, "n_resamples": 999, "rng": 1}
    alone = [ct.confidence_interval(q[by == g], y[by == g], **own) for g in "abc"]
    parts = found.subgroups
    assert [(t.low, t.high) for t in parts.tests] == [(t.low, t.high) for t in alone]
    assert parts.adjusted == tuple(holm([t.pvalue for t in alone]))
    assert "intervals of 0.9833 each, which cover together with 0.95" in str(found)
    for statistic, method in ((ct.MCE(5), "auto"), (ct.ECE(), "bootstrap")):
        with pytest.raises(ct.StatisticError, match="by needs method='inversion'"):
            ct.confidence_interval(q, y, statistic, method=method, by=by, n_resamples=999)
