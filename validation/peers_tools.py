"""What other packages are asked, and how: for :mod:`validation.peers`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import caltest as ct

#: Replicates, where that can be asked for.
B = 199


def both(p):
    return np.column_stack([1.0 - p, p])


def ours(statistic, p, y, rng):
    seed = int(rng.integers(2**63))
    return ct.calibration_test(
        p, y, statistic, lens=ct.OneVsRest(1), n_resamples=B, rng=seed
    ).pvalue


def our_interval(p, y, rng):
    seed = int(rng.integers(2**63))
    found = ct.confidence_interval(
        p, y, ct.ECE(15), lens=ct.OneVsRest(1), n_resamples=999, rng=seed
    )
    return found.low, found.high


def ece(p, y):
    """The textbook loop over 15 bins of equal width."""
    b = np.minimum((p * 15).astype(int), 14)
    return sum(abs((y[b == k] - p[b == k]).sum()) for k in range(15)) / p.size


def redrawn_loop(p, y, rng):
    """Labels redrawn from the predictions: P(T* ≥ T) with the data as one more draw."""
    null = [ece(p, rng.random(p.size) < p) for _ in range(B)]
    return (1 + sum(t >= ece(p, y) - 1e-12 for t in null)) / (1 + B)


def bootstrapped(value, p, y, rng):
    """The percentile interval of resampled rows, 95 %."""
    rows = (rng.integers(0, p.size, p.size) for _ in range(B))
    return tuple(np.quantile([value(p[i], y[i]) for i in rows], [0.025, 0.975]))


def sklearn_ece(p, y):
    seen, claimed = import_module("sklearn.calibration").calibration_curve(y, p, n_bins=15)
    size = np.histogram(p, np.linspace(0.0, 1.0, 16))[0]
    return float(np.abs(seen - claimed) @ size[size > 0]) / p.size


def netcal_ece(p, y):
    return import_module("netcal.metrics").ECE(15).measure(p, y)


def probcal_test(name, p, y, rng):
    return getattr(import_module("probcal.metrics"), name)(y, p).p_value


def probcal_skce(p, y, rng):
    seed = int(rng.integers(2**31))
    test = import_module("probcal.metrics").skce_test
    return test(y, p, n_boot=B, random_state=seed).p_value


def probcal_interval(metric, p, y, rng):
    seed, metrics = int(rng.integers(2**31)), import_module("probcal.metrics")
    found = metrics.evaluate(y, p, n_boot=B, random_state=seed, metrics=(metric,))
    return float(found.ci_low[0]), float(found.ci_high[0])


def mapie_test(name, p, y, rng):
    return getattr(import_module("mapie.metrics.calibration"), name)(y, p)


def mcgrad_ecce(p, y, rng):
    return import_module("mcgrad.metrics").ecce_pvalue(y, p)


def mcgrad_segments(p, y, rng):
    """Three features of five values that have nothing to do with the errors."""
    columns = {f"f{j}": rng.integers(0, 5, p.size).astype(str) for j in range(3)}
    frame = import_module("pandas").DataFrame({"y": y, "p": p, **columns})
    kind = import_module("mcgrad.metrics").MulticalibrationError
    return kind(frame, "y", "p", categorical_segment_columns=list(columns)).mce_pvalue


def calzone_value(asked, name, p, y, rng):
    kind = import_module("calzone.metrics").CalibrationMetrics
    return float(kind(class_to_calculate=1).calculate_metrics(y, both(p), [asked])[name])


def calzone_intercept(p, y, rng):
    ends = ("COX intercept lowerci", "COX intercept upperci")
    return tuple(calzone_value("COX", end, p, y, rng) for end in ends)


def calzone_interval(p, y, rng):
    module = import_module("calzone.metrics")
    np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002 it draws from the global state
    values = module.CalibrationMetrics(class_to_calculate=1).bootstrap(
        y, both(p), ["ECE-H"], n_samples=B
    )
    return tuple(map(float, module.get_CI(values)["ECE-H"]))


def verified_interval(p, y, rng):
    """What it calls the interval of alpha=0.05, of the l1 error."""
    np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002 it draws from the global state
    module = import_module("calibration")
    low, _, high = module.get_calibration_error_uncertainties(p, y, p=1, alpha=0.05)
    return float(low), float(high)


def calibstats_interval(p, y, rng):
    module, seed = import_module("calibstats"), int(rng.integers(2**31))
    found = module.bootstrap_ci(p, y, module.ece, n_boot=B, seed=seed)
    return found.low, found.high


def reliably_interval(name, p, y, rng):
    """BCa, its default. It takes the larger of p and 1 − p as the confidence."""
    module, seed = import_module("reliably.metrics"), int(rng.integers(2**31))
    found = getattr(module, name)(y, p, n_bootstrap=B, seed=seed).ci
    return found.low, found.high


def kunko_interval(p, y, rng):
    module, seed = import_module("judge_audit.metrics.calibration"), int(rng.integers(2**31))
    return tuple(module.ece_ci(p.tolist(), y.astype(bool).tolist(), n_boot=B, seed=seed))


#: Package and what is asked of it → how; the answer is a p-value, or the ends of an interval:
#: of the error of P(1), of the error of the larger of P(0) and P(1), or of the intercept.
TOOLS: dict[str, tuple[Callable[..., Any], str]] = {
    "caltest ECE, exact": (partial(ours, ct.ECE(15)), "p"),
    "caltest Kuiper": (partial(ours, ct.Kuiper()), "p"),
    "caltest Spiegelhalter": (partial(ours, ct.Spiegelhalter()), "p"),
    "caltest SKCE": (partial(ours, ct.SKCE()), "p"),
    "NumPy loop, labels redrawn": (redrawn_loop, "p"),
    "probcal Hosmer–Lemeshow": (partial(probcal_test, "hosmer_lemeshow"), "p"),
    "probcal Spiegelhalter": (partial(probcal_test, "spiegelhalter_z"), "p"),
    "probcal likelihood ratio": (partial(probcal_test, "calibration_test"), "p"),
    "probcal SKCE": (probcal_skce, "p"),
    "MAPIE Kolmogorov–Smirnov": (partial(mapie_test, "kolmogorov_smirnov_p_value"), "p"),
    "MAPIE Kuiper": (partial(mapie_test, "kuiper_p_value"), "p"),
    "MAPIE Spiegelhalter": (partial(mapie_test, "spiegelhalter_p_value"), "p"),
    "MCGrad ECCE": (mcgrad_ecce, "p"),
    "MCGrad MCE, three features": (mcgrad_segments, "p"),
    "calzone-tool Hosmer–Lemeshow": (partial(calzone_value, "HL-H", "HL-H p-value"), "p"),
    "calzone-tool Spiegelhalter": (
        partial(calzone_value, "SpiegelhalterZ", "SpiegelhalterZ p-value"),
        "p",
    ),
    "caltest ECE, interval": (our_interval, "error"),
    "NumPy loop, percentiles of ECE": (partial(bootstrapped, ece), "error"),
    "scikit-learn curve, percentiles of ECE": (partial(bootstrapped, sklearn_ece), "error"),
    "netcal ECE, percentiles": (partial(bootstrapped, netcal_ece), "error"),
    "probcal ECE, evaluate()": (partial(probcal_interval, "ece"), "error"),
    "probcal intercept, evaluate()": (partial(probcal_interval, "intercept"), "intercept"),
    "calzone-tool Cox intercept": (calzone_intercept, "intercept"),
    "calzone-tool ECE-H, bootstrap()": (calzone_interval, "error"),
    "uncertainty-calibration l1, alpha=0.05": (verified_interval, "error"),
    "calibstats ECE, bootstrap_ci()": (calibstats_interval, "error"),
    "reliably-metrics ECE, BCa": (partial(reliably_interval, "ece"), "confidence"),
    "reliably-metrics debiased ECE, BCa": (
        partial(reliably_interval, "debiased_ece"),
        "confidence",
    ),
    "kunko-judge-audit ECE, ece_ci()": (kunko_interval, "error"),
}
