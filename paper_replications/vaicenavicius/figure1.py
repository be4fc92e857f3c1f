"""Two-dimensional reliability diagrams of three groups of classes.

The ten classes are merged into {0, 1, 2}, {3, 4, 5} and {6, 7, 8, 9}, and the triangle of their
probabilities is cut into 25 or 100 equal triangles. An arrow leads from the mean prediction of a
cell to the outcomes in it. Deviations are small where predictions are frequent, as the paper says;
but they are small there for a calibrated and for an overconfident network alike, because frequent
cells have little noise. The p-value tells them apart, the picture hardly does.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

import caltest as ct
from paper_replications import nets
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, named

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Figure 1"
RECONSTRUCTION = (
    "noisy digits in place of CIFAR-10; cells ⌊L p_k⌋ over all three axes are the reading that "
    "gives 25 and 100 bins of equal size."
)

GROUPS = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])


def cut(data: ct.Predictions, m: int, context: Context) -> ct.ReliabilitySimplex:
    """Cut the triangle of the three groups into m² triangles of equal size."""
    return ct.reliability_simplex(data, lens=GROUPS, bins=m, n_resamples=999, rng=context.seed)


def gap(cells: ct.ReliabilitySimplex) -> np.ndarray:
    """Return the total variation between prediction and outcome of every cell."""
    return np.asarray(0.5 * np.abs(cells.deviation).sum(axis=1))


def run(context: Context) -> Result:
    """Check occupation, correlation and errors of the networks at two stages."""
    result, rows = Result(), []
    for seed in range(context.times(3, 1)):
        for stage, epoch in (("best", nets.best_epoch(seed)), ("final", -1)):
            data = nets.predictions(seed, epoch)
            coarse, fine = cut(data, 5, context), cut(data, 10, context)
            name = f"seed {seed}, {stage} epoch"
            result.inside(f"occupied of 25 cells, {name}", len(coarse.count), 22, 25, digits=0)
            result.inside(
                f"occupied of 100 cells, {name}", len(fine.count), 55, 98, "62 … 93", digits=0
            )
            three = np.sort(coarse.count)[-3:].sum() / data.n
            low, high = (0.60, 0.72) if stage == "best" else (0.79, 0.86)
            paper = "0.63 … 0.69" if stage == "best" else "0.82 … 0.83"
            result.inside(
                f"share of the three fullest of 25 cells, {name}", three, low, high, paper, digits=3
            )
            for m, cells in ((25, coarse), (100, fine)):
                rank = float(spearmanr(cells.count, gap(cells)).statistic)
                result.inside(
                    f"rank correlation of rows and deviation, {m} cells, {name}", rank, -1.0, -0.4,
                    "< −0.4", digits=2,
                )  # fmt: skip
    errors = {
        ("best", "raw"): (0.080, True),
        ("best", "scaled"): (0.058, False),
        ("final", "raw"): (0.077, True),
        ("final", "scaled"): (0.059, False),
    }
    grid = ct.ECE(ct.UniformBins(5, closed="left"))
    for (stage, kind), (error, rejected) in errors.items():
        epoch = nets.best_epoch(0) if stage == "best" else -1
        data = nets.predictions(0, epoch) if kind == "raw" else nets.scaled(0, epoch)[0]
        answer = ask(
            data, grid, GROUPS, context.seed, n_resamples=999, published=context.times(999, 199)
        )
        rows.append(answer.row(f"{stage} epoch, {kind}"))
        result.near(
            f"error over 25 cells, seed 0, {stage} epoch, {kind}",
            answer.estimate,
            error,
            0.01,
            digits=3,
        )
        result.holds(
            f"{stage} epoch, {kind}: " + ("rejected" if rejected else "not rejected") + " at 1 %",
            (answer.p <= 0.01) == rejected,
            f"p = {answer.p:.3f}",
        )
    result.tables.append(Table("25 cells, two conventions.", ["model, seed 0", *COLUMNS], rows))
    _real(result, context)
    if context.draw:
        for m in (5, 10):
            figure, axes = canvas(7.2, 2)
            for axis, (stage, epoch) in zip(
                axes, (("best", nets.best_epoch(0)), ("final", -1)), strict=True
            ):
                picture = cut(nets.predictions(0, epoch), m, context).plot(axis)
                named(picture, f"{stage} epoch")
            caption = (
                f"{m * m} cells; colour: density of the predictions (log scale); arrows from the "
                "mean prediction to the outcomes, red beyond chance, none below 5 rows."
            )
            result.save(figure, f"v_figure1_{m * m}", caption, context)
    return result


def _real(result: Result, context: Context) -> None:
    known = {"cifar10_densenet121": (0.961, 0.0269, 0.0307, 91), "cifar10_resnet18": None}
    for name, values in known.items():
        stored = context.stored(f"multiclass/{name}.npz")
        if stored is None:
            continue
        data = ct.Predictions.of(stored["probs"], stored["labels"])
        coarse, fine = cut(data, 5, context), cut(data, 10, context)
        if values is not None:
            corner, error25, error100, occupied = values
            in_corners = coarse.count[(coarse.bin_low > 0.79).any(axis=1)].sum() / data.n
            result.near(
                f"{name}: share of the corner cells, 25 cells", in_corners, corner, 6e-4, digits=3
            )
            result.near(f"{name}: error, 25 cells", coarse.test.estimate, error25, 6e-5)
            result.near(f"{name}: error, 100 cells", fine.test.estimate, error100, 6e-5)
            result.near(f"{name}: occupied of 100 cells", len(fine.count), occupied, 0, digits=0)
        result.near(f"{name}: p-value", coarse.test.pvalue, 0.001, 0.0, digits=3)
