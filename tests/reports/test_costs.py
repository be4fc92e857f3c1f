"""Audits and reports in the user's units, where costs are given."""

import numpy as np
import pytest

import caltest as ct

RUN = {"n_resamples": 199, "rng": 0}


@pytest.fixture(scope="module")
def risks():
    rng = np.random.default_rng(3)
    p = rng.beta(1.0, 4.0, 400)
    return p, (rng.random(400) < np.minimum(2.0 * p, 1.0)).astype(int)


def test_an_audit_has_the_row_and_the_sentence_of_the_promise(risks):
    costs = ct.Costs.threshold(0.2)
    found = ct.audit(*risks, costs=costs, **RUN)
    row = found.rows[-1]
    assert (row.lens, row.aspect) == ("Canonical() costs", "costs")
    alone = ct.calibration_test(*risks, ct.UtilityCalibration(costs), **RUN)
    assert row.pvalue == alone.pvalue
    direct = ct.promise(*risks, costs)
    assert (row.promise.promised, row.promise.pvalue) == (direct.promised, direct.pvalue)
    assert any(
        words.startswith("In your units, the realised mean utility") for words in found.details
    )
    plain = ct.audit(*risks, **RUN)
    assert [r.pvalue for r in plain.rows] == [r.pvalue for r in found.rows[:-1]]


def test_clusters_are_allowed_for_in_the_row_and_in_the_sentence(risks):
    found = ct.audit(*risks, costs=ct.Costs.threshold(0.2), clusters=np.arange(400) // 4, **RUN)
    assert found.rows[-1].test.clusters is not None
    assert found.rows[-1].promise.n_clusters == 100


def test_what_has_no_utilities_is_refused(risks):
    with pytest.raises(ct.StatisticError, match="a tally does not keep utilities"):
        ct.audit(ct.Tally.of(*risks), costs=ct.Costs.threshold(0.2), **RUN)


@pytest.mark.slow
def test_a_report_begins_with_the_costs_and_draws_the_curve(risks):
    page = ct.report(*risks, costs=ct.Costs.threshold(0.2), **RUN)
    first = page.sections[0]
    assert first.key == "costs"
    gained, curve = first.results
    assert 0.2 in curve.thresholds
    at = int(np.flatnonzero(curve.thresholds == 0.2)[0])
    assert curve.net_benefit[at] == pytest.approx(gained.realised, abs=1e-12)
    assert "<svg" in first.svg
    assert any("In your units" in words for words in page.summary)
    assert not any("no costs" in words for words in page.unexamined)


def test_a_report_without_costs_says_so(risks):
    page = ct.report(*risks, **RUN)
    assert any(words.startswith("usefulness for decisions") for words in page.unexamined)


def test_more_classes_have_the_promise_and_its_picture():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 200)
    labels = (rng.random((200, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    costs = ct.Costs([[0, 4, 4], [1, 1, 1]], ["keep", "check"])
    (first, *_) = ct.report(probs, labels, costs=costs, **RUN).sections
    assert [type(r).__name__ for r in first.results] == ["PromiseResult"]
    assert "gained" in first.svg


@pytest.mark.parametrize("verb", ["audit", pytest.param("report", marks=pytest.mark.slow)])
def test_the_command_line_takes_a_threshold_or_a_file(verb, done, tmp_path):
    rng = np.random.default_rng(1)
    p = rng.random(300).round(3)
    y = (rng.random(300) < p).astype(int)
    rows = tmp_path / "rows.csv"
    rows.write_text("p,y\n" + "".join(f"{a},{b}\n" for a, b in zip(p, y, strict=True)))
    costs = tmp_path / "costs.csv"
    costs.write_text("action,0,1\nwait,0,4\ntreat,1,1\n")
    out = ("-o", str(tmp_path / "page.html")) if verb == "report" else ()
    run = (verb, str(rows), "--n-resamples", "199", *out)
    assert "In your units" in done(*run, "--threshold", "0.2")
    assert "In your units" in done(*run, "--costs", str(costs))


def test_a_promise_of_clustered_rows_shows_their_dependence():
    rng = np.random.default_rng(1)
    p = np.repeat(rng.uniform(0.05, 0.9, 100), 4)
    y = np.repeat(rng.random(100) < p[::4], 4).astype(int)
    found = ct.promise(
        p, y, ct.Costs.threshold(0.2), clusters=np.arange(400) // 4, rng=1, n_resamples=99
    )
    assert found.clusters is not None
    assert found.clusters.dependence > 0.5
    assert "λ" in " ".join(found._in_words())
    assert type(found).from_json(found.to_json()).clusters == found.clusters
    curve = ct.decision_curve(p, y, [0.2], clusters=np.arange(400) // 4, rng=1, n_resamples=99)
    assert curve.clusters == found.clusters


def test_independent_rows_have_no_clusters_to_show():
    assert ct.promise([0.2, 0.6], [0, 1], ct.Costs.threshold(0.3)).clusters is None
