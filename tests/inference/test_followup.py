"""Risks with follow-up: against reference values, slow twins of the definitions, and lifelines."""

import json
import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import kstest

import caltest as ct
from caltest._base.written import Doubt
from caltest.errors import (
    InvalidPredictionsError,
    ShortFollowupWarning,
    StatisticError,
    UnsupportedFactError,
)
from caltest.statistics import Drawn
from caltest.statistics.prepared import prepare

P = np.array(
    [
        *(0.05, 0.08, 0.1, 0.12, 0.15, 0.18, 0.2, 0.22, 0.25, 0.28, 0.3, 0.33),
        *(0.36, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9),
    ]
)
TIME = np.array([6, 6, 2, 5, 6, 4, 3, 6, 1, 6, 5, 2, 6, 3, 6, 4, 1, 5, 2, 6, 3, 1, 4, 2.0])
EVENT = np.array([0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 0, 0, 1, 2, 1, 0, 1, 1, 0, 1])
STRATA = {"one": None, "two": np.repeat([0, 1], 12)}
THIRDS = ct.QuantileBins(3)
pytestmark = pytest.mark.filterwarnings("ignore::caltest.errors.ShortFollowupWarning")


def followed(strata="one"):
    return ct.Followup(TIME, EVENT == 1, 5, competing=EVENT == 2, strata=STRATA[strata])


def kinds_of(seen):
    """Return 1 for events, 2 for competing events and 0 for censored rows."""
    return seen.event + 2 * (0 if seen.competing is None else seen.competing)


def survival(n, rng, rate=0.6, dependence=0.0, truth=lambda p: p, competing=0.0):
    """Exponential times with P(T ≤ 1) = truth(p), and censoring whose hazard may depend on p."""
    p = rng.beta(1.2, 2.2, n)
    event = rng.exponential(size=n) / -np.log1p(-truth(p))
    rank = 2.0 * p.argsort().argsort() / n - 1.0
    lost = rng.exponential(size=n) / (rate * np.exp(dependence * rank))
    kind = np.ones(n, dtype=int)
    if competing:  # by time 1 the event has the risk p, and of the others a share competes
        first, second = rng.random(n) < p, rng.random(n) < competing
        kind = np.where(first, 1, 2)
        event = np.where(first | second, rng.random(n), np.inf)
    time = np.minimum(event, lost)
    kind = kind * (event <= lost)
    return p, ct.Followup(time, kind == 1, 1.0, competing=kind == 2 if competing else None)


def slow_weights(time, event, horizon, strata):
    """1{known} / Ĝ(min(x, t)−), row by row, events before censorings at ties."""
    ended = (time <= horizon) & (event > 0)
    known = ended | (time >= horizon)
    weights = np.zeros(time.size)
    for i in np.flatnonzero(known):
        mine, left = strata == strata[i], 1.0
        for v in np.unique(time[mine & ~known]):
            if v < min(time[i], horizon):
                at_risk = (mine & (time >= v)).sum() - (mine & (time == v) & (event > 0)).sum()
                left *= 1.0 - (mine & ~known & (time == v)).sum() / at_risk
        weights[i] = 1.0 / left
    return weights


# By a slow program of the formulas, written apart from the package: weights by Kaplan and Meier's
# product, three statistics, sums with their variance by influence functions, Cox by Newton's steps.
@dataclass(frozen=True)
class Reference:
    """Numbers of the 24 rows by another program, with one stratum or two."""

    strata: str
    #: Weights of the rows 0, 5 and 13.
    weights: list[float]
    ece: float
    kuiper: float
    debiased_l2: float
    mean_residual: float
    influence: float
    share: float
    #: Values of the Cox line, with their standard errors.
    oe: tuple[float, float]
    intercept: tuple[float, float]
    slope: tuple[float, float]
    in_the_large: tuple[float, float]


REFERENCES = [
    Reference(
        "one",
        weights=[1.4152024446, 1.1974789916, 1.1176470588],
        ece=0.0290083079,
        kuiper=0.0698585116,
        debiased_l2=-0.0320471268,
        mean_residual=-0.0202993697,
        influence=2.3328805229,
        share=0.7751186054,
        oe=(0.9056269758, 0.2875650592),
        intercept=(-0.1280655207, 0.5613166673),
        slope=(0.963257875, 0.417641574),
        in_the_large=(-0.1168334961, 0.5630708741),
    ),
    Reference(
        "two",
        weights=[1.375, 1.375, 1.0],
        ece=0.0484375,
        kuiper=0.0760416667,
        debiased_l2=-0.0328894531,
        mean_residual=-0.0255208333,
        influence=2.2972868554,
        share=0.7710843373,
        oe=(0.8955987718, 0.2793954191),
        intercept=(-0.1770718689, 0.5230629726),
        slope=(0.8966287506, 0.4118771858),
        in_the_large=(-0.1466346189, 0.5546273774),
    ),
]
with_one_stratum_and_two = pytest.mark.parametrize(
    "known", REFERENCES, ids=[known.strata for known in REFERENCES]
)


@with_one_stratum_and_two
def test_weights_of_censoring_are_those_of_the_reference(known):
    weights = ct.Predictions.of(P, followed(known.strata)).censoring.weights
    np.testing.assert_allclose(weights[[0, 5, 13]], known.weights, atol=1e-9)
    codes = np.zeros(24, int) if STRATA[known.strata] is None else STRATA[known.strata]
    np.testing.assert_allclose(weights, slow_weights(TIME, EVENT, 5.0, codes), atol=1e-12)


@with_one_stratum_and_two
def test_statistics_of_followup_are_those_of_the_reference(known):
    data = ct.Predictions.of(P, followed(known.strata))
    assert ct.ECE(THIRDS)(data) == pytest.approx(known.ece, abs=1e-9)
    assert ct.Kuiper()(data) == pytest.approx(known.kuiper, abs=1e-9)
    assert ct.DebiasedL2(THIRDS)(data) == pytest.approx(known.debiased_l2, abs=1e-9)


@with_one_stratum_and_two
def test_influence_and_known_share_are_those_of_the_reference(known):
    data = ct.Predictions.of(P, followed(known.strata))
    residuals = data.residuals[:, 1]
    influence = np.sqrt((data.censoring.influence(residuals) ** 2).sum())
    assert residuals.sum() / 24 == pytest.approx(known.mean_residual, abs=1e-9)
    assert influence == pytest.approx(known.influence, abs=1e-9)
    share = followed(known.strata).summary(P).share
    assert share == pytest.approx(known.share, abs=1e-9)


@with_one_stratum_and_two
def test_the_cox_line_of_followup_is_that_of_the_reference(known):
    line = ct.cox_recalibration(P, followed(known.strata))
    assert (line.oe, line.oe_se) == pytest.approx(known.oe, abs=1e-9)
    assert (line.intercept, line.intercept_se) == pytest.approx(known.intercept, abs=1e-9)
    assert (line.slope, line.slope_se) == pytest.approx(known.slope, abs=1e-9)
    assert (line.in_the_large, line.in_the_large_se) == pytest.approx(known.in_the_large, abs=1e-9)


def test_values_of_one_stratum():
    """Reference values; O is Aalen and Johansen's, and weights of draws add up to the rows."""
    answer = ct.cox_recalibration(P, followed(), link="cloglog")
    found = answer.intercept, answer.slope, answer.in_the_large
    np.testing.assert_allclose(found, [-0.0757084684, 1.0131093644, -0.0806159561], atol=1e-9)
    middle, _, _ = answer.curve(np.array([0.3]))
    eta = answer.intercept + answer.slope * np.log(-np.log(0.7))
    np.testing.assert_allclose(middle, 1.0 - np.exp(-np.exp(eta)))
    answer = ct.cox_recalibration(P, followed())
    found = np.array([answer.oe, answer.oe_se * answer.oe]) * P.mean()
    np.testing.assert_allclose(found, [0.3686656481, 0.1060153589], atol=1e-9)
    signed = ct.RedrawFollowup().drawer(ct.OneVsRest(1)(ct.Predictions.of(P, followed())))
    np.testing.assert_allclose(np.abs(signed((3, 4), 0, 200)).sum(axis=1), 24.0, rtol=1e-12)


@pytest.mark.slow
def test_the_redraw_has_the_law_of_a_readable_one():
    """Mean and deviation of Σ r and of the ECE, from 400 000 draws of a slow program."""
    data = ct.OneVsRest(1)(ct.Predictions.of(P, followed()))
    signed = ct.RedrawFollowup().drawer(data)((3, 4), 0, 40_000)
    r = signed * np.where(signed > 0, 1.0 - P, P)
    assert abs(r.sum(axis=1).std() / 2.2526 - 1.0) < 0.01
    error = np.abs(r.reshape(-1, 3, 8).sum(axis=2)).sum(axis=1) / 24.0
    assert abs(error.mean() / 0.13046 - 1.0) < 0.01
    assert abs((error >= 0.0290083).mean() - 0.984) < 0.003


def redrawn_slowly(p, seen, strata, rng):
    """One draw as the definition says it: times and kinds, then weights by the slow twin."""
    known = slow_weights(seen.time, seen.ended, seen.horizon, strata)
    status, kind = seen.status, np.zeros(p.size, int)
    event, lost = np.full(p.size, np.inf), np.full(p.size, np.inf)
    for s in np.unique(strata):
        rows = np.flatnonzero(strata == s)
        rest = known[rows][status[rows] != 1].sum()
        share = known[rows][status[rows] == 2].sum() / rest
        kind[rows] = np.where(
            rng.random(rows.size) < p[rows], 1, 2 * (rng.random(rows.size) < share)
        )
        for cause in (1, 2):
            enough = (status[rows] == cause).sum() >= 5
            of = rows[status[rows] == cause] if enough else np.flatnonzero(status == cause)
            hit = rows[kind[rows] == cause]
            event[hit] = rng.choice(seen.time[of], hit.size, p=known[of] / known[of].sum())
        cuts, mass, left = np.unique(seen.time[rows][status[rows] == -1]), [], 1.0
        for v in cuts:
            at = seen.time[rows] >= v
            at &= ~((seen.time[rows] == v) & seen.ended[rows])
            step = ((seen.time[rows] == v) & (status[rows] == -1)).sum() / at.sum()
            mass.append(left * step)
            left *= 1.0 - step
        lost[rows] = rng.choice(np.append(cuts, np.inf), rows.size, p=[*mass, max(left, 0.0)])
    time = np.minimum(np.minimum(event, lost), seen.horizon)
    ended = (event <= lost) & (kind > 0)
    new = np.where(ended, kind, 0)
    weights = slow_weights(time, new, seen.horizon, strata)
    return weights * ((new == 1) & (time <= seen.horizon)) - weights * p


@pytest.mark.slow
def test_the_redraw_of_strata_with_competing_events_has_the_law_of_its_slow_twin():
    rng = np.random.default_rng(5)
    p, seen = survival(120, rng, dependence=1.0, competing=0.4)
    ties = np.ceil(8 * seen.time) / 8
    seen = ct.Followup(ties, seen.event, horizon=1.0, competing=seen.competing)
    strata = seen.groups(p)
    assert strata.max() == 1
    slow = np.array([redrawn_slowly(p, seen, strata, rng) for _ in range(400)])
    data = ct.OneVsRest(1)(ct.Predictions.of(p, seen))
    signed = ct.RedrawFollowup().drawer(data)((1, 2), 0, 20_000)
    quick = signed * np.where(signed > 0, 1.0 - p, p)
    for score in (np.ones(p.size), p, (p > 0.4) * 1.0):
        drawn = quick @ score
        centre = np.sort(drawn)
        cdf = lambda x, c=centre: np.searchsorted(c, x, side="right") / c.size  # noqa: E731
        assert kstest(slow @ score, cdf).pvalue > 1e-3
    assert abs((slow == 0.0).mean() - (quick == 0.0).mean()) < 0.01


@pytest.mark.parametrize(
    "statistic", [ct.ECE(), ct.Kuiper(), ct.DebiasedL2(), ct.ScoreGap("log"), ct.ICI(), ct.CORP()]
)
def test_without_censoring_follow_up_is_labels(statistic):
    y = (np.random.default_rng(1).random(24) < P).astype(int)
    seen = ct.Followup(np.where(y == 1, 1.0, 5.0), y, horizon=5)
    run = {"n_resamples": 999, "rng": 3}
    a = ct.calibration_test(P, seen, statistic, **run)
    b = ct.calibration_test(P, y, statistic, null=ct.RedrawLabels(), **run)
    assert a.pvalue == b.pvalue
    if statistic != ct.ScoreGap("log"):  # whose deviation comes from draws
        np.testing.assert_allclose(a.estimate, b.estimate, atol=1e-12)


@pytest.mark.parametrize("statistic", [ct.ICI(), ct.E90(curve="loess"), ct.CORP("log")])
def test_statistics_of_labels_see_known_rows_by_their_weights(statistic):
    data = ct.Predictions.of(P, followed())
    w, known = data.censoring.weights, followed().status >= 0
    rows = {"weights": w[known]}
    expected = statistic(P[known], followed().labels[known], **rows)
    np.testing.assert_allclose(statistic(data), expected, atol=1e-12)
    signed = ct.RedrawFollowup().drawer(data)((1, 2), 0, 5)
    drawn = [
        statistic(P[s != 0], (s[s != 0] > 0).astype(int), weights=np.abs(s[s != 0])) for s in signed
    ]
    signed = np.vstack([signed, np.zeros(P.size)])  # a draw may leave no row known
    values = prepare(statistic, ct.OneVsRest(1)(data)).values(Drawn(signed))
    np.testing.assert_allclose(values, [*drawn, 0.0], atol=1e-12)


def test_curves_are_kaplan_meier_in_every_bin():
    lifelines = pytest.importorskip("lifelines")
    p, seen = survival(1000, np.random.default_rng(0))
    curve = ct.reliability_curve(p, seen, bins=ct.QuantileBins(10), rng=1)
    cells = ct.QuantileBins(10)(np.column_stack([p, 1.0 - p]))
    for k, observed in enumerate(curve.observed):
        rows = cells == k
        fit = lifelines.KaplanMeierFitter().fit(seen.time[rows], seen.event[rows])
        np.testing.assert_allclose(observed, 1.0 - fit.predict(1.0), atol=1e-12)
    assert (curve.low <= curve.observed).mean() > 0.7
    joint = ct.reliability_curve(p, seen, simultaneous=True, rng=1, n_resamples=499)
    assert joint.band == "RedrawFollowup()"
    assert not joint.outside.any()


def test_aalen_johansen_of_competing_events():
    lifelines = pytest.importorskip("lifelines")
    p, seen = survival(400, np.random.default_rng(3), competing=0.3)
    one = replace(seen, strata=np.zeros(400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = lifelines.AalenJohansenFitter().fit(seen.time, kinds_of(seen), event_of_interest=1)
    answer = ct.cox_recalibration(p, one)
    incidence = fit.cumulative_density_.loc[:1.0].iloc[-1, 0]
    np.testing.assert_allclose(answer.oe * p.mean(), incidence, atol=1e-10)


def test_verbs_agree_with_each_other():
    p, seen = survival(600, np.random.default_rng(2), truth=lambda p: p**1.5)
    run = {"rng": 1, "n_resamples": 199}
    by = np.where(p > 0.4, "high", "low")
    pairs = [(ct.ECE(), None), (ct.CoxScore(), None)]
    joint = ct.joint_test(p, seen, pairs=pairs, **run)
    alone = [ct.calibration_test(p, seen, s, **run) for s, _ in pairs]
    assert [t.pvalue for t in joint.tests] == [t.pvalue for t in alone]
    assert alone[0].followup == seen.summary(p)
    audit = ct.audit(p, seen, by=by, **run)
    assert audit.rejects
    assert ct.AuditReport.from_json(audit.to_json()).followup == alone[0].followup
    groups = ct.calibration_test(p, seen, by=by, **run).subgroups
    part = p > 0.4
    own = ct.Followup(seen.time[part], seen.event[part], horizon=1.0)
    assert groups.tests[0].pvalue == ct.calibration_test(p[part], own, **run).pvalue


REFUSED = """
ct.confidence_interval(p, seen, ct.MCE())
ct.calibration_test(p, seen, clusters=np.arange(p.size) // 2)
ct.equivalence_test(p, seen, tolerance=0.1) | ct.calibration_test(p, seen, null=ct.RedrawLabels())
ct.compare(p, p, seen) | ct.calibration_test(p, seen.labels, null=ct.RedrawFollowup())
ct.gate(p, seen, against=p, margin=0.1) | ct.ECE()({"p": p, "w": p + 1.0}, seen, weights="w")
ct.Monitor().update(p, seen) | ct.cox_recalibration(p, seen.labels, link="cloglog")
ct.Tally.of(p, seen) | ct.meta_analysis(p, seen, by=np.arange(p.size) % 6)
ct.Tallies.of(p, seen) | ct.calibration_test(np.full((24, 3), 1 / 3), seen)
ct.brier_decomposition(p, seen) | ct.calibration_test(p, seen, null=ct.Bootstrap())
ct.corp_decomposition(p, seen) | ct.ECE()(ct.TopK(1)(ct.Predictions.of(p, seen)))
ct.reliability_fit(p, seen) | ct.cox_recalibration(p, seen, method="profile")
ct.recalibration.PlattScaling().fit(p, seen) | ct.calibration_test(p, seen, lambda q, y: 0.0)
ct.BrierScore().per_row(p, seen) | ct.calibration_test(p, seen, lens=ct.TopK(1))
ct.bin_sensitivity(p, seen) | ct.reliability_curve(p, seen, band="wilson")
ct.calibration_test(p, seen, weights=p) | ct.calibration_test(p, seen, null="exact")
ct.calibration_test(p, seen, ct.Sweep()) | ct.calibration_test(p, seen, ct.CoxLR())
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_does_not_honour_follow_up_says_so(line):
    words = "follow-up|followup|RedrawFollowup|outcome"
    for call in line.split(" | "):
        with pytest.raises((StatisticError, InvalidPredictionsError), match=words):
            eval(call, {"ct": ct, "np": np, "p": P, "seen": followed()})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": -TIME}, "row 0 is -6; times are ≥ 0"),
        ({"time": np.where(TIME == 2, np.nan, TIME)}, "row 2 is nan"),
        ({"event": np.where(EVENT == 2, "dead", "0")}, "event: row 0 is '0'; .*=status == '0'"),
        ({"event": EVENT - 1}, "row 0 is -1"),
        ({"event": EVENT * 0.5}, "row 5 is 0.5"),
        ({"event": EVENT}, "row 8 is 2; .* event=status == 1, competing=status == 2"),
        ({"competing": EVENT}, "competing: row 8 is 2"),
        ({"competing": EVENT > 0}, "row 5 has the event and a competing event"),
        ({"event": EVENT[:5]}, "one value for each of the 24 times"),
        ({"horizon": 0}, "horizon must be a number > 0, not 0"),
        ({"horizon": 7}, "nobody was followed to 7: the last time is 6; take an earlier horizon"),
        ({"time": TIME[:9], "event": EVENT[:9] == 1}, "probs has 24 rows but labels has 9"),
    ],
)
def test_wrong_follow_up_is_named(given, words):
    asked = {"time": TIME, "event": EVENT == 1, "horizon": 5, "competing": None} | given
    with pytest.raises((InvalidPredictionsError, StatisticError), match=words):
        ct.calibration_test(P, ct.Followup(**asked))


def questions(n, rng, longest=600.0):
    """Calibrated forecasts by a deadline; events come late in short questions, early in long."""
    horizon, p, u = rng.uniform(30.0, 700.0, n), rng.beta(1, 1.5, n), rng.random(n)
    event = np.where(rng.random(n) < p, horizon * np.where(horizon < 300, u**0.25, u**3), np.inf)
    age = longest - rng.uniform(0.0, longest, n)
    return p, ct.Followup(np.minimum(event, age), event <= age, horizon)


def test_a_horizon_a_row_is_time_over_horizon_within_one():
    time, event = np.array([3.0, 6.0, 2.0, 8.0]), np.array([True, False, False, True])
    seen = ct.Followup(time, event, horizon=[3.0, 6.0, 4.0, 7.0])
    assert seen.status.tolist() == [1, 0, -1, 0]
    scaled = ct.Followup(time / np.array([3.0, 6.0, 4.0, 7.0]), event, 1.0)
    assert scaled.status.tolist() == seen.status.tolist()
    assert repr(seen) == "Followup(n=4, horizon=3 to 7)"


def test_one_horizon_for_all_rows_in_an_array_gives_the_weights_of_the_number():
    p, seen = survival(300, np.random.default_rng(1))
    strata = np.arange(300) % 2
    one, each = (
        ct.Followup(seen.time, seen.event, h, strata=strata).censoring(p).weights
        for h in (0.5, np.full(300, 0.5))
    )
    np.testing.assert_allclose(one, each, rtol=1e-12)


def test_strata_of_rows_with_horizons_are_thirds_of_both():
    p, seen = questions(900, np.random.default_rng(0))
    groups = seen.groups(p)
    assert np.unique(groups).size == 9
    third = np.searchsorted(np.quantile(seen.horizon, [1 / 3, 2 / 3]), seen.horizon)
    for k in range(3):  # three groups of the prediction within each third of the horizon
        assert np.unique(groups[third == k]).size == 3
    assert np.unique(seen.take(np.arange(100)).groups(p[:100])).size == 4
    assert np.unique(seen.take(np.arange(50)).groups(p[:50])).size == 1


def test_rows_with_a_horizon_beyond_the_longest_follow_up_are_left_out_and_counted():
    p, seen = questions(400, np.random.default_rng(0))
    by = np.where(p > 0.4, "high", "low")
    data = ct.Predictions.of(p, seen, by=by)
    beyond = seen.horizon > seen.time.max()
    assert 0 < beyond.sum() < 100
    np.testing.assert_array_equal(data.places, np.flatnonzero(~beyond))
    np.testing.assert_array_equal(data.followup.time, seen.time[~beyond])
    np.testing.assert_array_equal(data.by, by[~beyond])
    assert any(f"left out {beyond.sum()} rows with a horizon beyond" in n for n in data.notes)
    result = ct.calibration_test(data, n_resamples=99, rng=0)
    assert result.followup.left_out == beyond.sum()
    assert result.followup.shortest == seen.horizon.min()
    assert ct.CalibrationTestResult.from_json(result.to_json()) == result
    assert "by the horizon of each row (3" in str(result.followup)
    assert data.followup.beyond.sum() <= beyond.sum()  # the longest time may have been left out


def test_a_horizon_a_row_answers_as_scaled_times_with_the_same_strata():
    p, seen = questions(400, np.random.default_rng(3))
    kept = seen.within()
    p = p[~seen.beyond]
    scaled = ct.Followup(kept.elapsed, kept.event, 1.0, strata=kept.groups(p))
    a, b = (ct.calibration_test(p, s, n_resamples=199, rng=0) for s in (kept.within(), scaled))
    assert kept.within().n == kept.n
    assert (a.estimate, a.pvalue) == (b.estimate, b.pvalue)


@pytest.mark.parametrize(
    ("horizon", "words"),
    [
        ([1.0, 2.0], "one for each of the 24 times; its shape is (2,)"),
        (np.where(TIME == 2, 0.0, 5.0), "horizon: row 2 is 0; horizons are > 0"),
        (np.where(TIME == 2, np.nan, 5.0), "row 2 is nan"),
        (np.full(24, 700.0), "nobody was followed to a horizon: the last time is 6, the shortest"),
    ],
)
def test_wrong_horizons_of_rows_are_named(horizon, words):
    with pytest.raises((InvalidPredictionsError, StatisticError), match=re.escape(words)):
        ct.Predictions.of(P, ct.Followup(TIME, EVENT == 1, horizon))


def test_late_entry_is_refused_with_the_ways_that_hold():
    with pytest.raises(UnsupportedFactError, match=r"left truncation.*landmark") as caught:
        ct.Followup(TIME, EVENT == 1, 5, entry=TIME / 2)
    assert caught.value.fact == "left truncation"


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [ct.CalibrationInTheLarge(), ct.Kuiper()])
def test_size_with_a_horizon_a_row(statistic):
    """0.05 and two standard errors of 200 sets; strata of the prediction alone reject 0.2."""
    hits = np.zeros(2)
    for r in range(200):
        p, seen = questions(400, np.random.default_rng([11, r]))
        plain = ct.Followup(seen.time / seen.horizon, seen.event, 1.0)
        run = {"n_resamples": 99, "rng": r}
        hits += [ct.calibration_test(p, s, statistic, **run).pvalue <= 0.05 for s in (seen, plain)]
    assert hits[0] / 200 <= 0.05 + 0.031
    assert hits[1] / 200 > 0.12


def test_follow_up_that_is_too_short_is_said():
    with pytest.warns(ShortFollowupWarning, match="effective n is only 19"):
        ct.Predictions.of(P, followed())
    rng = np.random.default_rng(0)
    p, seen = survival(300, rng)
    with pytest.warns(ShortFollowupWarning, match="a stratum has 1 rows, fewer than 20"):
        ct.Predictions.of(p, ct.Followup(seen.time, seen.event, horizon=1.0, strata=p < p.max()))
    event, early = np.arange(900) % 2, np.arange(900) < 30  # a stratum that ends before
    time = np.where(early, 0.5 - 0.4 * event, np.where(event, 0.7, 2.0))
    with pytest.warns(ShortFollowupWarning, match="1.7% of the rows are in tails that nobody"):
        ct.Predictions.of(np.full(900, 0.5), ct.Followup(time, event, horizon=1.0, strata=early))
    p, seen = survival(300, rng, rate=4.0)
    with pytest.raises(StatisticError, match="effective share of the rows is 0"):
        ct.cox_recalibration(p, seen)


@pytest.mark.slow
@pytest.mark.parametrize("case", [{}, {"dependence": 1.0}, {"competing": 0.4}])
def test_size(case):
    """Largest of five sizes at 0.05, of 300 sets each: 0.085 and two standard errors."""
    rng, hits = np.random.default_rng(7), np.zeros(5)
    statistics = (ct.ECE(), ct.OERatio(), ct.CoxScore(), ct.HosmerLemeshow(), ct.Kuiper())
    pairs = [(s, None) for s in statistics]
    for _ in range(300):
        p, seen = survival(200, rng, **case)
        tests = ct.joint_test(p, seen, pairs=pairs, n_resamples=99, rng=rng).tests
        hits += [t.pvalue <= 0.05 for t in tests]
    assert (hits / 300).max() < 0.085 + 0.032


def test_files_and_commands(tmp_path, done, refused):
    rng = np.random.default_rng(4)
    p, seen = survival(200, rng)
    site = np.where(rng.random(200) < 0.5, "a", "b")
    rows = zip(p, seen.time, kinds_of(seen), site, strict=True)
    path = tmp_path / "patients.csv"
    path.write_text("risk,years,status,site\n" + "\n".join(",".join(map(str, r)) for r in rows))
    columns = {"time": "years", "event": "status", "horizon": 1.0}
    data = ct.read_predictions(path, "risk", **columns, strata="site")
    expected = ct.Followup(seen.time, seen.event, horizon=1.0, strata=site)
    run = {"n_resamples": 99, "rng": 0}
    test = ct.calibration_test(data, **run)
    assert test.pvalue == ct.calibration_test(p, expected, **run).pvalue
    asked = [path, "--probs", "risk", "--time", "years", "--event", "status"]
    more = ["--horizon", "1", "--n-resamples", "99", "--json"]
    out = done("test", *asked, *more, "--strata", "site")
    assert ct.CalibrationTestResult.from_json(out).pvalue == test.pvalue
    limits = json.loads(done("interval", *asked, "--horizon", 1, "--json", "--statistic", "O:E"))
    plain = ct.Followup(seen.time, seen.event, horizon=1.0)
    assert [limits["low"][0], limits["high"][0]] == [*ct.cox_recalibration(p, plain).oe_interval]
    size = json.loads(done("interval", *asked, "--horizon", 1, "--json", "--statistic", "ECE(5)"))
    assert 0.0 <= size["low"] < size["estimate"] < size["high"]
    refused(
        "with follow-up is known to cover",
        "interval",
        *asked,
        "--horizon",
        1,
        "--statistic",
        "MCE()",
    )
    for wrong, words in {
        (): "an event needs the time that rows were followed for",
        ("--horizon", "0"): "horizon must be a number > 0",
        ("--horizon", "1", "--label", "status"): "the event replaces the label",
    }.items():
        refused(words, "audit", *asked, *wrong)


@pytest.mark.parametrize(("h", "factor", "doubted"), [(2.0, 1.0, True), (1.0, 1 / 24, False)])
def test_a_short_horizon_is_doubted_where_events_fall_short_of_predictions(h, factor, doubted):
    rng = np.random.default_rng(5)
    p = rng.beta(1.2, 2.2, 600)
    months = 24.0 * rng.exponential(size=600) / -np.log1p(-p)
    risk = -np.expm1(np.log1p(-p) * factor)
    seen = ct.Followup(np.minimum(months, 40.0), months <= 40.0, horizon=h)
    (note,) = ct.Predictions.of(risk, seen).notes
    assert note.startswith(f"times reach to 40: a horizon of {h:g} is in the same unit")
    assert isinstance(note, Doubt) is doubted
