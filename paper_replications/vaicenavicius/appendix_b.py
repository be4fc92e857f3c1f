"""Data-dependent partitions of the simplex: two trees.

The authors' package splits a cell at the mean of its most variable axis as long as it holds 100
rows; their later work splits at the median as long as both parts keep 100. Neither looks at labels,
so that the partition may be held fixed when labels are redrawn. Constant predictions give one cell,
and the order of the rows does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import caltest as ct
from caltest.plots.chart import BLUE, INK
from caltest.plots.panels import TRIANGLE, clipped
from paper_replications.model import Context, Result, canvas

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Appendix B (and Figure 5)"
RECONSTRUCTION = (
    "neither the appendix nor the figure was available; the algorithms follow the authors' "
    "published code."
)

TREES = {"mean": ct.VarianceTree(100, split="mean"), "median": ct.VarianceTree(100)}


def run(context: Context) -> Result:
    """Check what the two trees promise."""
    result = Result()
    rng = context.rng(1)
    probs = rng.dirichlet(np.full(3, 0.5), 2000)
    order = rng.permutation(2000)
    for name, tree in TREES.items():
        cells = tree(probs)
        constant = tree(np.tile([0.2, 0.3, 0.5], (500, 1)))
        result.near(
            f"{name} split: cells of constant predictions", constant.max() + 1, 1, 0, digits=0
        )
        shuffled = tree(probs[order])
        pairs = len(set(zip(cells[order].tolist(), shuffled.tolist(), strict=True)))
        result.near(
            f"{name} split: cells after shuffling, matched", pairs, cells.max() + 1, 0, digits=0
        )
        sizes = np.bincount(cells)
        low, high = (1, 99) if name == "mean" else (100, 250)
        result.inside(f"{name} split: smallest cell", sizes.min(), low, high, digits=0)
        result.inside(
            f"{name} split: largest cell", sizes.max(), 1, 99 if name == "mean" else 250, digits=0
        )
    stored = context.stored("multiclass/cifar10_densenet121.npz")
    if stored is not None:
        raw = stored["probs"].astype(float)
        for name, known in (("mean", 137), ("median", 64)):
            result.near(
                f"densenet121: cells, {name} split", TREES[name](raw).max() + 1, known, 0, digits=0
            )
    if context.draw:
        from matplotlib.collections import PolyCollection

        figure, axes = canvas(1.9, 1, 2)
        for axis, (name, tree) in zip(axes, TREES.items(), strict=True):
            cells = tree(probs)
            own = [probs[cells == j] for j in range(cells.max() + 1)]
            borders = [clipped(p.min(axis=0), p.max(axis=0)) @ TRIANGLE for p in own]
            shades: Any = {
                "facecolors": ["#dbe9f5", "white"],
                "edgecolors": BLUE,
                "linewidths": 0.7,
            }
            axis.add_collection(PolyCollection(borders, **shades))
            axis.scatter(*(probs @ TRIANGLE).T, color=INK, marker="o", s=0.6, lw=0, zorder=2)
            axis.plot(*TRIANGLE[[0, 1, 2, 0]].T, color=INK, lw=0.8, ls="-", marker="")
            axis.set(aspect="equal", title=f"{name} split,\n{cells.max() + 1} cells")
            axis.axis("off")
        caption = "2000 points from Dirichlet(1/2, 1/2, 1/2), and the cells that hold them."
        result.save(figure, "v_b", caption, context)
    return result
