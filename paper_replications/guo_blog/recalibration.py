"""Reliability diagrams, Platt scaling and temperature scaling.

The overfit network is confident in 89 % of its answers and right in 82 %. Temperature scaling on
the validation rows brings most of it back, with the predicted class of no row changed; Platt
scaling does the same for a network that tells even digits from odd. The test rows are not rows of
the fit: caltest marks predictions that were recalibrated on the very rows, and refuses to test
them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

import caltest as ct
from caltest.recalibration import PlattScaling, Temperature, TemperatureScaling, refuse_fitted_rows
from paper_replications import nets
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, named

PAPER = "Blog on Guo et al. 2017"
WHERE = "Reliability Diagrams, Platt Scaling, Temperature Scaling, MCE"
RECONSTRUCTION = "the figures are of networks on CIFAR-100; these are of the noisy digits."


def run(context: Context) -> Result:
    """Check the diagrams' numbers, and what scaling does and does not change."""
    result = Result()
    raw, rows = nets.predictions(0, -1), []
    scaled, temperature = nets.scaled(0, -1)
    for name, data, confidence, error in (
        ("raw", raw, 0.889, 0.072),
        ("scaled", scaled, 0.796, 0.038),
    ):
        result.near(f"{name}: mean confidence", nets.confidence(data), confidence, 0.01, digits=3)
        result.near(f"{name}: accuracy", nets.accuracy(data), 0.820, 0.01, digits=3)
        answer = ask(data, ct.ECE(10), ct.TopK(1), context.seed)
        result.near(f"{name}: ECE, 10 bins", answer.estimate, error, 0.01, digits=3)
        rows.append(answer.row(f"{name}, ECE"))
        rows.append(ask(data, ct.MCE(10), ct.TopK(1), context.seed).row(f"{name}, MCE"))
        if name == "raw":
            result.inside("raw: p-value", answer.p, 0.0, 0.001, "0.001")
        tree = ct.calibration_test(data, None, ct.ECE(ct.VarianceTree(50)))
        if name == "scaled":
            result.inside(
                "scaled: p-value, data-dependent bins", tree.pvalue, 0.05, 1.0, "0.52", digits=3
            )
    result.near("temperature after 40 epochs", temperature, 1.69, 0.02, digits=3)
    result.near(
        "temperature at the best epoch", nets.scaled(0, nets.best_epoch(0))[1], 0.88, 0.02, digits=3
    )
    for seed in range(1, context.times(3, 1)):
        result.inside(
            f"temperature after 40 epochs, seed {seed}",
            nets.scaled(seed, -1)[1],
            1.6,
            1.9,
            "1.69 … 1.84",
            digits=3,
        )
    result.near(
        "rows whose predicted class changes",
        (raw.probs.argmax(axis=1) != scaled.probs.argmax(axis=1)).sum(),
        0,
        0.0,
        digits=0,
    )
    _temperature(result)
    platt = _platt(result, context)
    result.tables.append(Table("Two conventions.", ["model", *COLUMNS], [*rows, *platt]))
    if context.draw:
        _draw(result, context, raw, scaled)
    return result


def _temperature(result: Result) -> None:
    x, y = nets.digits().validation
    scores = log_softmax(nets.logits(nets.history(0)[-1], x), axis=1)
    entropies = []
    for t in (0.5, 1.0, 2.0, 4.0):
        q = Temperature(t)(scores)
        entropies.append(float(-(q * np.log(np.maximum(q, 1e-300))).sum(axis=1).mean()))
    result.holds(
        "a higher temperature raises the entropy",
        bool((np.diff(entropies) > 0.0).all()),
        ", ".join(f"{e:.3f}" for e in entropies),
    )
    far = float(np.abs(Temperature(1e7)(scores) - 0.1).max())
    result.inside("distance from 1/K at T = 10⁷", far, 0.0, 1e-5, "→ 0", digits=6)
    fitted = TemperatureScaling().fit(scores, y, from_logits=True)
    result.inside(
        "nLL after − before, rows of the fit",
        fitted.nll_after - fitted.nll_before,
        -1.0,
        0.0,
        "≤ 0",
    )
    validation = ct.Predictions.of(np.exp(scores), y)
    try:
        refuse_fitted_rows(fitted(validation))
        refused = "not refused"
    except ct.StatisticError:
        refused = "refused"
    result.holds("a test on the rows of the fit is refused", refused == "refused", refused)


def _platt(result: Result, context: Context) -> list[list[object]]:
    split = nets.digits()
    (x, y), (xv, yv), (xt, yt) = split.train, split.validation, split.test
    *_, last = nets.train(x, y % 2, classes=2, epochs=60, seed=0)

    def margin(images: np.ndarray) -> np.ndarray:
        z = nets.logits(last, images)
        return np.asarray(z[:, 1] - z[:, 0])

    fitted = PlattScaling().fit(margin(xv), yv % 2, from_logits=True)
    raw = ct.Predictions.of(margin(xt), yt % 2, from_logits=True)
    repaired = fitted(raw)
    (curve,) = fitted.map.curves  # type: ignore[attr-defined]
    result.near("Platt: slope a", curve.a, 0.32, 0.01, digits=3)
    result.near("Platt: intercept b", curve.c, 0.02, 0.02, digits=3)
    rows = []
    for name, data, error, nll in (
        ("even or odd, raw", raw, 0.0829, 0.484),
        ("even or odd, Platt", repaired, 0.0230, 0.300),
    ):
        answer = ask(data, ct.ECE(10), ct.TopK(1), context.seed)
        rows.append(list(answer.row(name)))
        result.near(f"{name}: accuracy", nets.accuracy(data), 0.880, 0.01, digits=3)
        result.near(f"{name}: ECE, 10 bins", answer.estimate, error, 0.01)
        result.near(f"{name}: nLL", ct.LogScore()(data), nll, 0.01, digits=3)
        rejected = name.endswith("raw")
        result.holds(
            f"{name}: " + ("rejected" if rejected else "not rejected"),
            (answer.p <= 0.05) == rejected,
            f"p = {answer.p:.3f}",
            "p = 0.001" if rejected else "p = 0.67",
        )
    return rows


def _draw(result: Result, context: Context, raw: ct.Predictions, scaled: ct.Predictions) -> None:
    figure, axes = canvas(7.6, 2)
    for axis, (title, data) in zip(
        axes, (("raw", raw), ("temperature-scaled", scaled)), strict=True
    ):
        curve = ct.reliability_curve(data, bins=10, band=None)
        named(curve.plot(axis, style="classical"), title)
    caption = "Confidence histograms and reliability diagrams before and after temperature scaling."
    result.save(figure, "b_recalibration", caption, context)
