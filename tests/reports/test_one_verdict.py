"""Gate, audit and report judge one tolerance by one interval."""

import numpy as np
import pytest

import caltest as ct
from caltest.reports.audit import ErrorBounds

TOLERANCE = 0.05
RUN = {"n_resamples": 199, "rng": 1}
#: What an audit may say for each word of the gate.
WORDS = {
    "passed": ("calibrated to within the tolerance", "miscalibrated, but too little to matter"),
    "failed": ("miscalibrated, and it matters",),
    "cannot tell": ("cannot tell",),
}
#: How the sentence of a report on the tolerance begins.
OPENINGS = {"passed": "No:", "failed": "Yes:", "cannot tell": "Cannot tell:"}


def two_classes(shift, n=3000):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.6, n)
    return ct.Predictions.of(p, (rng.random(n) < p + shift).astype(int))


def clustered(shift):
    data = two_classes(shift)
    return ct.Predictions.of(data.probs, data.labels, clusters=np.arange(data.n) // 3)


def weighted(shift):
    data, rng = two_classes(shift), np.random.default_rng(4)
    return ct.Predictions.of(data.probs, data.labels, weights=rng.uniform(0.5, 1.5, data.n))


def four_classes(shift, n=3000):
    """Return overconfident predictions whose confidence is too large by about ``shift``."""
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 1.5, (n, 4))
    p, true = (np.exp(a * z) / np.exp(a * z).sum(axis=1, keepdims=True) for a in (1, 1 - 4 * shift))
    labels = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=3)
    return ct.Predictions.of(p, labels)


def followed(shift, n=3000):
    rng = np.random.default_rng(6)
    p = rng.uniform(0.05, 0.5, n)
    died = rng.exponential(-1.0 / np.log1p(-p - shift))
    left = rng.exponential(3.0, n)
    return ct.Predictions.of(p, ct.Followup(np.minimum(died, left), died <= left, 1.0))


@pytest.mark.parametrize(
    "shift", [0.0, 0.05, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.02, 0.12))]
)
@pytest.mark.parametrize("draw", [two_classes, clustered, weighted, four_classes, followed])
def test_gate_audit_and_report_give_one_verdict_by_one_interval(draw, shift):
    data = draw(shift)
    gate = ct.gate(data, tolerance=TOLERANCE, **RUN)
    audit = ct.audit(data, tolerance=TOLERANCE, **RUN)
    report = ct.report(data, tolerance=TOLERANCE, **RUN)
    bounds = gate.checks[0].low, gate.checks[0].high
    assert (audit.low, audit.high) == bounds
    assert (report.audit.low, report.audit.high) == bounds
    assert audit.verdict in WORDS[gate.verdict]
    assert report.audit.verdict == audit.verdict
    assert report.screen.matters.startswith(OPENINGS[gate.verdict])


@pytest.mark.parametrize("draw", [two_classes, clustered, weighted, four_classes, followed])
def test_every_verdict_is_reached(draw):
    gates = [ct.gate(draw(shift), tolerance=TOLERANCE, **RUN) for shift in (0.0, 0.05, 0.12)]
    assert [gate.verdict for gate in gates] == ["passed", "cannot tell", "failed"]


def cities(shift, n=3000):
    """Return predictions of three cities, of which Porto's are too low by ``shift``."""
    rng = np.random.default_rng(1)
    p, city = rng.beta(1.5, 4.0, n), rng.choice(["Porto", "Braga", "Faro"], n, p=[0.2, 0.5, 0.3])
    labels = rng.random(n) < np.clip(p + shift * (city == "Porto"), 0.0, 1.0)
    return ct.Predictions.of(p, labels.astype(int), by=city)


def test_a_subgroup_that_is_off_by_more_than_the_tolerance_decides_on_the_whole_page():
    report = ct.report(cities(0.12), tolerance=TOLERANCE, **RUN)
    porto = report.screen.parts[0]
    assert (porto.name, porto.finding) == ("Porto", "above tolerance")
    assert report.audit.verdict == "miscalibrated, and it matters"
    assert report.screen.matters.startswith("Yes. At Porto")
    assert "group Porto is larger than the tolerance 0.05" in report.summary[-1]


def test_a_subgroup_that_may_be_off_is_said_beside_an_interval_within_the_tolerance():
    report = ct.report(cities(0.09), tolerance=TOLERANCE, **RUN)
    assert report.audit.verdict == "cannot tell"
    assert report.audit.high <= TOLERANCE
    assert "that of a part may be larger" in report.screen.matters


def test_the_mean_difference_of_a_part_raises_the_lower_bound_of_its_error():
    data, pair, draws = two_classes(0.08), (ct.ECE(), ct.OneVsRest(1)), RUN | {"workers": None}
    own = ErrorBounds.of(data, pair, 0.05, draws)
    both = ErrorBounds.of_part(data, pair, 0.05, draws)
    signed = ct.confidence_interval(data, None, ct.MeanDifference(), level=0.975, **RUN)
    assert own.low < both.low == signed.low < 0.08
    assert both.high == own.high
