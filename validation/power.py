"""Power of every statistic against several ways to be miscalibrated.

``python -m validation.power`` writes ``docs/power.md`` and its figure; ``--quick`` is a small
version that prints.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import caltest as ct
from caltest.inference.null import max_t
from validation.draws import dirichlet, labels_from, two_classes
from validation.pages import opening, table
from validation.study import DOCS, Study, run

LEVEL = 0.05
B = 199


@dataclass(frozen=True)
class Alternative:
    """Predictions and the probabilities that are true, drawn by a function of (rng, n)."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"

    @property
    def vectors(self) -> bool:
        return self.key in {other.key for other in VECTORS}  # also in another process

    def __call__(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their labels."""
        probs, truth = self.draw(rng, self.n)
        return probs, labels_from(truth, rng)


def logit(p):
    return np.log(p / (1.0 - p))


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def binary(sample, truth, rng, n):
    p = sample(rng, n)
    q = np.clip(truth(p), 0.0, 1.0)
    return two_classes(p), two_classes(q)


def uniform(rng, n):
    return rng.uniform(0.001, 0.999, n)


def confidence(rng, n):
    return rng.uniform(0.5, 0.999, n)


def rare(rng, n):
    return np.clip(rng.beta(0.5, 10.0, n), 1e-6, 0.999)


def two_values(rng, n):
    return np.where(rng.random(n) < 0.5, rng.uniform(0.472, 0.49, n), rng.uniform(0.51, 0.528, n))


def right(p):
    return p


def slope(s, p):
    return sigmoid(s * logit(p))


def shift(s, p):
    return sigmoid(logit(p) + s)


def waves(count, height, p):
    return p + height * np.sin(2.0 * np.pi * count * p) * 4.0 * p * (1.0 - p)


def bump(p):
    return p + 0.2 * ((p > 0.6) & (p < 0.75))


def label_noise(share, p):
    return (1.0 - share) * p + share * 0.5


def apart(p):
    return p + np.where(p > 0.5, 0.08, -0.08)


def softened(probs, temperature):
    rows = probs ** (1.0 / temperature)
    return rows / rows.sum(axis=1, keepdims=True)


def tempered(concentration, n_classes, temperature, rng, n):
    probs = dirichlet(concentration, n_classes, rng, n)
    return probs, softened(np.maximum(probs, 1e-12), temperature)


def noisy(concentration, n_classes, share, rng, n):
    probs = dirichlet(concentration, n_classes, rng, n)
    return probs, (1.0 - share) * probs + share / n_classes


def forced(concentration, n_classes, share, rng, n):
    probs = dirichlet(concentration, n_classes, rng, n)
    truth = (1.0 - share) * probs
    truth[:, 0] += share
    return probs, truth


def six_points(rng, n):
    six = ct.examples.SixPoints()
    row = rng.integers(6, size=n)
    return six.probs[row], six.truth[row]


TWO_CLASSES = [
    Alternative("calibrated", 500, partial(binary, uniform, right)),
    Alternative("overconfident (slope 0.7)", 500, partial(binary, uniform, partial(slope, 0.7))),
    Alternative("underconfident (slope 1.4)", 500, partial(binary, uniform, partial(slope, 1.4))),
    Alternative("confidence, slope 0.75", 500, partial(binary, confidence, partial(slope, 0.75))),
    Alternative("shifted (0.25 logits)", 500, partial(binary, uniform, partial(shift, 0.25))),
    Alternative("rare event, shifted (0.5)", 500, partial(binary, rare, partial(shift, 0.5))),
    Alternative("label noise (15 %)", 500, partial(binary, uniform, partial(label_noise, 0.15))),
    Alternative("local bump (+0.2 on 0.6–0.75)", 500, partial(binary, uniform, bump)),
    Alternative("3 waves (0.15)", 500, partial(binary, uniform, partial(waves, 3, 0.15))),
    Alternative("20 waves (0.3)", 500, partial(binary, uniform, partial(waves, 20, 0.3))),
    Alternative("errors that cancel in one bin", 500, partial(binary, two_values, apart)),
]
VECTORS = [
    Alternative("calibrated, K=10", 250, partial(noisy, 0.1, 10, 0.0)),
    Alternative("six points (canonical only), K=3", 500, six_points),
    Alternative("overconfident (T=1.4), K=10", 250, partial(tempered, 0.3, 10, 1.4)),
    Alternative("underconfident (T=0.7), K=10", 250, partial(tempered, 0.3, 10, 0.7)),
    Alternative("15 % of labels uniform, K=10, peaked", 250, partial(noisy, 0.1, 10, 0.15)),
    Alternative("15 % of labels uniform, K=10, flat", 250, partial(noisy, 1.0, 10, 0.15)),
    Alternative("15 % of labels class 0, K=10, flat", 250, partial(forced, 1.0, 10, 0.15)),
    Alternative("underconfident (T=0.7), K=100", 500, partial(tempered, 0.05, 100, 0.7)),
]
EVENT = ct.OneVsRest(1)
TWO_CLASS_TESTS = {
    "ECE(15)": (ct.ECE(15), EVENT),
    "ECE, equal mass": (ct.ECE(ct.QuantileBins(15)), EVENT),
    "l2 error": (ct.ECE(15, distance="sqeuclidean"), EVENT),
    "MCE(15)": (ct.MCE(15), EVENT),
    "debiased l2": (ct.DebiasedL2(15), EVENT),
    "Hosmer–Lemeshow": (ct.HosmerLemeshow(), EVENT),
    "monotone sweep": (ct.Sweep(), EVENT),
    "multi-scale": (ct.MultiScale(), EVENT),
    "Kolmogorov–Smirnov": (ct.KolmogorovSmirnov(), EVENT),
    "Kuiper": (ct.Kuiper(), EVENT),
    "smooth ECE": (ct.SmoothECE(), EVENT),
    "CORP": (ct.CORP(), EVENT),
    "SKCE": (ct.SKCE(), EVENT),
    "ICI": (ct.ICI(), EVENT),
    "Spiegelhalter's z": (ct.Spiegelhalter(), EVENT),
    "log-score gap": (ct.ScoreGap("log"), EVENT),
    "Cox score": (ct.CoxScore(), EVENT),
    "in the large": (ct.CalibrationInTheLarge(), EVENT),
}
VECTOR_TESTS = {
    "top-1 ECE(15)": (ct.ECE(15), ct.TopK(1)),
    "top-1 Kuiper": (ct.Kuiper(), ct.TopK(1)),
    "top-1 Cox score": (ct.CoxScore(), ct.TopK(1)),
    "top-1 multi-scale": (ct.MultiScale(), ct.TopK(1)),
    "tree ECE": (ct.ECE(ct.VarianceTree(20)), ct.Canonical()),
    "tree debiased l2": (ct.DebiasedL2(ct.VarianceTree(20)), ct.Canonical()),
    "grid ECE(10)": (ct.ECE(10), ct.Canonical()),
    "class-wise ECE(15)": (ct.ClasswiseECE(15), ct.Canonical()),
    "class-wise, largest": (ct.ClasswiseECE(15, aggregate="max"), ct.Canonical()),
    "adaptive (ACE)": (ct.ACE(15), ct.Canonical()),
    "multi-scale": (ct.MultiScale(), ct.Canonical()),
    "SKCE": (ct.SKCE(), ct.Canonical()),
    "Brier gap": (ct.ScoreGap(), ct.Canonical()),
    "log-score gap": (ct.ScoreGap("log"), ct.Canonical()),
}
#: What the audit asks without bins: three statistics together, by max-T from the same draws.
OMNIBUS = "audit: Cox score, Kuiper, multi-scale"
TOGETHER = ("Cox score", "Kuiper", "multi-scale")
TOP_TOGETHER = tuple(f"top-1 {name}" for name in TOGETHER)
KINDS = {kind.key: kind for kind in [*TWO_CLASSES, *VECTORS]}


def tests(alternative):
    asked = VECTOR_TESTS if alternative.vectors else TWO_CLASS_TESTS
    three = TOP_TOGETHER if alternative.vectors else TOGETHER
    return {**asked, OMNIBUS: [asked[name] for name in three]}


def measure(alternative, wanted, rng):
    """Return which tests reject; all of them share the redrawn labels."""
    probs, labels = alternative(rng)
    asked = tests(alternative)
    three = asked.pop(OMNIBUS)
    seed = int(rng.integers(2**63))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joint = ct.joint_test(probs, labels, pairs=list(asked.values()), n_resamples=B, rng=seed)
    answers = dict(zip(asked, joint.tests, strict=True))
    audit = [answers[name] for name, pair in asked.items() if pair in three]
    draws = np.column_stack([np.asarray(test.null_distribution) for test in audit])
    pvalues = {name: test.pvalue for name, test in answers.items()}
    pvalues[OMNIBUS] = min(max_t(np.array([test.estimate for test in audit]), draws))
    return {name: (pvalues[name] <= LEVEL + 1e-12,) for name in wanted}


def as_table(found, alternatives, names) -> tuple[list[str], np.ndarray]:
    """Return the lines of a table, and its rates by alternative and test."""
    rates = np.array([[found.means(a.key, name)[0] for name in names] for a in alternatives])
    near = (rates >= rates.max(axis=1, keepdims=True) - 0.05) & (rates > 0.2)
    near[[a.name.startswith("calibrated") for a in alternatives]] = False
    rows = [
        [name, *(f"**{r:.2f}**" if b else f"{r:.2f}" for r, b in zip(row, bold, strict=True))]
        for name, row, bold in zip(names, rates.T, near.T, strict=True)
    ]
    return table(["statistic", *(a.name for a in alternatives)], rows), rates


def page(found):
    """Return the page, and draw the figure."""
    lines, drawn = [], []
    for head, alternatives in zip(SECTIONS, (TWO_CLASSES, VECTORS), strict=True):
        shown = [a for a in alternatives if a.key in found.shown]
        names = list(tests(alternatives[0]))
        rows, rates = as_table(found, shown, names)
        lines += [head, "", *rows, ""]
        drawn.append((shown, names, rates))
    if not found.quick:
        draw_figure(drawn)
    return HEADER.format(b=B, **opening(found)) + "\n".join(lines), []


HEADER = """# Power of the tests

No statistic is best against everything: which fault a test notices depends on what it looks at, as
the tables show. For two classes score gaps and `CoxScore` are best against slopes, cumulative sums,
`SKCE` and `ICI` against shifts, `CORP`, `DebiasedL2` and `MultiScale` against local faults. The
audit's row without bins, the last one of each table, is seldom the best, and of two classes it
misses nothing.

The share of data sets with p ≤ 0.05 is shown for models that *are* miscalibrated; the first column
is a calibrated model, where 0.05 is right. Within 0.05 of the best test of its column: bold. Labels
are redrawn ({b} replicates), the same for all tests.

Levels and slopes of every class (`MulticlassCox`, `WorstClass`) are in {{doc}}`classes`, errors
item by item (`IndividualError`) in {{doc}}`votes`, utilities in {{doc}}`benefit`.

{made}

```{{image}} power.svg
:alt: Power of every statistic against every alternative, as a shaded table
```

"""
SECTIONS = ("## Two classes", "## Whole vectors")


def draw_figure(drawn) -> None:
    """Draw the two tables as shaded squares."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    heights = [len(names) for _, names, _ in drawn]
    figure = Figure(figsize=(9.0, 0.28 * sum(heights) + 4.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(2, 1, height_ratios=heights)
    for ax, (alternatives, names, rates) in zip(axes, drawn, strict=True):
        ax.imshow(rates.T, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto")
        ax.set_xticks(range(len(alternatives)), [a.name for a in alternatives], fontsize=8)
        ax.tick_params(axis="x", rotation=35, top=True, bottom=False, labeltop=True)
        ax.tick_params(axis="x", labelbottom=False)
        for label in ax.get_xticklabels():
            label.set_horizontalalignment("left")
            label.set_rotation_mode("anchor")
        ax.set_yticks(range(len(names)), names, fontsize=8)
        for (a, t), rate in np.ndenumerate(rates):
            ink = "white" if rate > 0.55 else "black"
            shown = f"{rate:.2f}".removeprefix("0") if rate < 0.995 else "1"
            ax.text(a, t, shown, ha="center", va="center", fontsize=7, color=ink)
    figure.savefig(DOCS / "power.svg", metadata={"Date": None})


STUDY = Study("power", KINDS, tests, measure, page, seed=20180719, quick=4)
if __name__ == "__main__":
    run(STUDY)
