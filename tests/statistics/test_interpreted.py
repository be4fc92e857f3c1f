"""Kernels without their compiler: the same answers, also where there are more than 256 events."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import caltest as ct

#: More events than a byte can count, also among rows of one prediction.
N = 330
STATISTICS = (
    ct.ATB(), ct.ClasswiseECE(), ct.CORP(), ct.CORP("log"), ct.CoxScore(), ct.DebiasedL2(),
    ct.ECE(), ct.ICI(), ct.KolmogorovSmirnov(), ct.Kuiper(), ct.MCE(), ct.MMCE(), ct.MultiScale(),
    ct.ScoreGap("log"), ct.SKCE(), ct.SmoothECE(), ct.Sweep(),
)  # fmt: skip


def answers():
    """Return value and p-value of every statistic: of many events, of ties, of weights, of K = 3.

    Values are compared as they are; refusals are answers, too.
    """
    rng = np.random.default_rng(1)
    likely = rng.uniform(0.8, 0.99, N)
    tied = np.where(np.arange(N) < 310, 0.95, 0.6)
    three = rng.dirichlet([12.0, 1.0, 1.0], N)
    cases = {
        "likely": (likely, (rng.random(N) < likely).astype(int), {}),
        "tied": (tied, (rng.random(N) < tied).astype(int), {}),
        "weights": (
            likely,
            (rng.random(N) < likely).astype(int),
            {"weights": np.arange(N) % 3 + 1},
        ),
        "three": (three, (rng.random((N, 1)) > three.cumsum(axis=1)).sum(axis=1), {}),
    }
    found = {}
    for name, (probs, labels, facts) in cases.items():
        lens = {"lens": ct.Canonical()} if name == "three" else {}
        for statistic in STATISTICS:
            try:
                test = ct.calibration_test(
                    probs, labels, statistic, n_resamples=9, rng=1, **lens, **facts
                )
                found[f"{name}, {statistic}"] = test.estimate, test.pvalue
            except ct.StatisticError as error:
                found[f"{name}, {statistic}"] = str(error)
    return found


@pytest.mark.slow
def test_interpreted_kernels_answer_as_compiled_ones():
    command = [sys.executable, "-W", "error:overflow encountered:RuntimeWarning", __file__]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    interpreted, compiled = json.loads(run.stdout), answers()
    assert interpreted.keys() == compiled.keys()
    for name, value in compiled.items():
        assert interpreted[name] == (value if isinstance(value, str) else pytest.approx(value)), (
            name
        )


@pytest.mark.parametrize("statistic", [ct.ECE, ct.MCE])
def test_weights_count_where_the_distance_is_a_function(statistic, rng):
    def half(a, b):
        return 0.5 * np.abs(a - b).sum()

    for k in (2, 4):
        probs = rng.dirichlet(np.ones(k), 300)
        labels, weights = rng.integers(0, k, 300), rng.uniform(0.5, 3.0, 300)
        lens = ct.OneVsRest(1) if k == 2 else ct.Canonical()
        asked = {"lens": lens, "weights": weights, "n_resamples": 19, "rng": 1}
        one, other = (
            ct.calibration_test(probs, labels, statistic(10, distance=d), **asked)
            for d in (half, "tv")
        )
        assert one.estimate == pytest.approx(other.estimate, rel=1e-12)
        assert one.pvalue == other.pvalue


def test_a_weighted_log_score_allows_certain_predictions(rng):
    p = np.concatenate([[0.0, 1.0], rng.uniform(0.1, 0.9, 98)])
    y = (rng.random(100) < p).astype(int)
    w = np.arange(100) % 3 + 1
    once = ct.ScoreGap("log")(np.repeat(p, w), np.repeat(y, w))
    value = ct.ScoreGap("log")(p, y, weights=w)
    assert np.isfinite(value)
    gap = ct.LogScore()(p, y, weights=w)
    assert gap == pytest.approx(ct.LogScore()(np.repeat(p, w), np.repeat(y, w)))
    assert np.sign(value) == np.sign(once)
    with pytest.raises(ct.StatisticError, match="inf"):  # what was impossible has occurred
        ct.calibration_test(p, np.append(1, y[1:]), ct.ScoreGap("log"), weights=w)


if __name__ == "__main__":
    print(json.dumps(answers()))
