"""Reliability diagrams of the top class with consistency bars, equal or data-dependent bins.

With bins of equal width most predictions share the last bin, and the diagram looks at few rows.
Data-dependent bins hold as many rows each, and show the overconfidence of an overfit network in
most of them. Ninety-percent bars are as many tests as there are bins: even of a calibrated network
every tenth cross is expected outside.
"""

from __future__ import annotations

import caltest as ct
from caltest.data.binning import Binning
from paper_replications import nets
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, named, reach

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Figures 4 and 15–18"
RECONSTRUCTION = "noisy digits in place of CIFAR-10; with --data the networks of Figures 15–18."

SCHEMES: dict[str, Binning] = {
    "equal size": ct.UniformBins(10),
    "data-dependent": ct.VarianceTree(50),
}


def run(context: Context) -> Result:
    """Count the bins outside their bars."""
    result, panels = Result(), {}
    rows = []
    for seed in range(context.times(3, 1)):
        data = {
            "scaled": nets.scaled(seed, nets.best_epoch(seed))[0],
            "final": nets.predictions(seed, -1),
        }
        for stage, model in data.items():
            for j, (scheme, bins) in enumerate(SCHEMES.items()):
                panels[seed, stage, scheme] = _curve(model, bins, context, 1, seed, j)
                rows.append(
                    ask(model, ct.ECE(bins), ct.TopK(1), context.seed).row(
                        f"seed {seed}, {stage}, {scheme}"
                    )
                )
        name = f"seed {seed}"
        scaled, final = (panels[seed, stage, "data-dependent"] for stage in data)
        result.inside(
            f"best epoch, scaled: data-dependent bins outside, of {scaled.count.size}, {name}",
            scaled.outside.sum(),
            0,
            4,
            "0, 2, 2 of 16",
            digits=0,
        )
        result.inside(
            f"epoch 40: data-dependent bins outside, of {final.count.size}, {name}",
            final.outside.sum(),
            7,
            16,
            "12, 9, 10 of 16",
            digits=0,
        )
        for stage in data:
            outside = panels[seed, stage, "equal size"]
            low, high, paper = (
                (0, 4, "1, 0, 3 of 8") if stage == "scaled" else (2, 6, "4, 4, 3 of 8")
            )
            result.inside(
                f"{stage}: equal bins outside, of {outside.count.size}, {name}",
                outside.outside.sum(),
                low,
                high,
                paper,
                digits=0,
            )
        below = (final.deviation[final.outside] < 0).mean()
        result.inside(
            f"epoch 40: share of these that are overconfident, {name}", below, 0.7, 1.0, digits=2
        )
    result.tables.append(Table("Two conventions.", ["model and bins", *COLUMNS], rows))
    _real(result, context)
    if context.draw:
        figure, axes = canvas(10.4, 4)
        titles = {"scaled": "best epoch, temperature-scaled", "final": "epoch 40"}
        shown = [(stage, scheme) for stage in titles for scheme in SCHEMES]
        curves = [panels[0, stage, scheme] for stage, scheme in shown]
        for axis, curve, (stage, scheme) in zip(axes, curves, shown, strict=True):
            named(curve.plot(axis, top=reach(*curves)), f"{titles[stage]}: {scheme} bins")
        caption = "Deviations, 5–95 % of consistency resamples (red), predictions (blue)."
        result.save(figure, "v_figure4", caption, context)
    return result


def _curve(data: ct.Predictions, bins: Binning, context: Context, *key: int) -> ct.ReliabilityCurve:
    """Return deviations of the top class with bars as published."""
    return ct.reliability_curve(
        data, bins=bins, band=ct.ConsistencyResampling(), n_resamples=context.times(1000, 300),
        rng=context.rng(*key),
    )  # fmt: skip


def _real(result: Result, context: Context) -> None:
    stored = context.stored("multiclass/cifar10_densenet121.npz")
    if stored is None:
        return
    data = ct.Predictions.of(stored["probs"], stored["labels"])
    schemes: tuple[tuple[str, Binning], ...] = (
        ("equal size", ct.UniformBins(10)),
        ("data-dependent", ct.VarianceTree(100)),
    )
    panels = {name: _curve(data, bins, context, 2, j) for j, (name, bins) in enumerate(schemes)}
    equal, tree = panels.values()
    result.near("densenet121: occupied equal bins", equal.count.size, 9, 0, digits=0)
    result.near("densenet121: equal bins outside", equal.outside.sum(), 5, 1, digits=0)
    result.near("densenet121: data-dependent bins", tree.count.size, 64, 0, digits=0)
    result.near("densenet121: data-dependent bins outside", tree.outside.sum(), 35, 5, digits=0)
    worst = max(float(p.deviation[p.outside].max()) for p in panels.values())
    result.inside("densenet121: largest deviation outside its bar", worst, -1.0, 0.0, "all below 0")
    last = equal.count[-1] / data.n
    result.near("densenet121: share of the last equal bin", last, 0.918, 5.1e-4, digits=3)
    if context.draw:
        figure, axes = canvas(5.4, 2)
        for axis, (scheme, panel) in zip(axes, panels.items(), strict=True):
            top = reach(*panels.values())
            named(panel.plot(axis, top=top), f"densenet121: {scheme} bins")
        result.save(figure, "v_figure15", "Figure 15/16: densenet121 on CIFAR-10.", context)
