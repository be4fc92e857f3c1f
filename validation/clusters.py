"""Size of tests and intervals where rows of a cluster depend on each other, in many ways.

``python -m validation.clusters`` writes ``docs/clustered.md``; ``--quick`` is a small version that
prints. Either fails when calibrated models are rejected more often than 7 % at the 5 % level, or an
interval leaves the error of 0 out, by more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit, ndtr

import caltest as ct
from validation.draws import two_classes
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, LIMIT = 0.05, 0.07
B = 199


def sized(count, size, rng):
    """Return the cluster of every row, of one size or of sizes in a range."""
    sizes = np.full(count, size) if isinstance(size, int) else rng.integers(*size, count)
    return np.repeat(np.arange(count), sizes)


def by_quantile(probs, u):
    """Return the labels at which the cumulated probabilities pass u."""
    return np.minimum((np.cumsum(probs, axis=1) <= u[:, None]).sum(axis=1), probs.shape[1] - 1)


def alone(probs, cluster, rng):
    return by_quantile(probs, rng.random(len(probs)))


def shared_label(probs, cluster, rng):
    return by_quantile(probs, rng.random(cluster[-1] + 1)[cluster])


def normal(correlation, probs, cluster, rng):
    """Labels cut from normal numbers that correlate within a cluster."""
    common, own = rng.normal(size=cluster[-1] + 1)[cluster], rng.normal(size=len(probs))
    return by_quantile(probs, ndtr(correlation**0.5 * common + (1.0 - correlation) ** 0.5 * own))


def shared_correctness(probs, cluster, rng):
    """All likeliest labels of a cluster are right or wrong together, as far as they can be."""
    rows, top = np.arange(len(probs)), probs.argmax(axis=1)
    right = rng.random(cluster[-1] + 1)[cluster] < probs[rows, top]
    rest = probs.copy()
    rest[rows, top] = 0.0
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), 1e-300)
    return np.where(right, top, by_quantile(rest, rng.random(len(probs))))


def half_and_half(probs, cluster, rng):
    """Labels are shared in every second cluster, correctness in the others."""
    labels = shared_label(probs, cluster, rng), shared_correctness(probs, cluster, rng)
    return np.where(cluster % 2 == 0, *labels)


def predictions(n_classes, shape, rng, n):
    """Return predictions of Dirichlet's law, of two classes Beta(shape, shape)."""
    if n_classes == 2:
        return two_classes(rng.beta(shape, shape, n))
    return rng.dirichlet(np.full(n_classes, shape), n)


def of_rows(n_classes, shape, count, size, coupling, rng):
    cluster = sized(count, size, rng)
    probs = predictions(n_classes, shape, rng, cluster.size)
    return probs, coupling(probs, cluster, rng), cluster


def pairs_and_copies(rng):
    """150 pairs with one case each at p = ½, and 12 clusters of six copies at .6 to .95."""
    first, risk = rng.integers(0, 2, 150), rng.uniform(0.6, 0.95, 12)
    p = np.concatenate([np.full(300, 0.5), np.repeat(risk, 6)])
    y = np.concatenate(
        [np.column_stack([first, 1 - first]).ravel(), np.repeat(rng.random(12) < risk, 6)]
    )
    return two_classes(p), y.astype(int), np.repeat(np.arange(162), [2] * 150 + [6] * 12)


def nested(hospitals, patients, rows, shares, level, rng):
    """Rows of patients in hospitals; normal numbers behind the labels have a part for each level.

    Hospitals have so many patients each, or sizes like 1 / rank where ``patients`` is negative.
    ``level`` names the clusters that are said: of hospitals, of patients, or of both.
    """
    size = np.full(hospitals, abs(patients))
    if patients < 0:
        share = 1.0 / np.arange(1, hospitals + 1)
        size = np.maximum(1, np.rint(-patients * hospitals * share / share.sum())).astype(int)
    hospital = np.repeat(np.arange(hospitals), rows * size)
    patient = np.repeat(np.arange(size.sum()), rows)
    p = rng.random(patient.size)
    z = np.sqrt(1.0 - sum(shares)) * rng.standard_normal(patient.size)
    for unit, part in zip((hospital, patient), shares, strict=True):
        z += np.sqrt(part) * rng.standard_normal(unit.max() + 1)[unit]
    both = {"hospital": hospital, "patient": patient}
    return two_classes(p), (ndtr(z) < p).astype(int), both.get(level, both)


def loans(borrowers, quarters, rng):
    """Borrowers of constant hazard, in each quarter before their default: is it within a year?"""
    risk = rng.beta(1, 14, borrowers)
    default = rng.exponential(1, borrowers) / (-np.log1p(-risk) / 4)
    wait = default[:, None] - np.arange(quarters)
    borrower, _ = rows = np.nonzero(wait > 0)
    return two_classes(risk[borrower]), (wait[rows] <= 4).astype(int), borrower


def sloped(rng):
    """50 clusters of five independent rows of slope 0.6: power."""
    p = rng.random(250)
    y = rng.random(250) < expit(0.6 * logit(p))
    return two_classes(p), y.astype(int), np.repeat(np.arange(50), 5)


@dataclass(frozen=True)
class Design:
    """Rows of clusters, seen through a lens."""

    name: str
    n_classes: int
    draw: partial
    lens: ct.Lens

    @property
    def tests(self):
        """The statistics of this lens, by name."""
        if self.lens == ct.Canonical():
            return {
                "ECE": ct.ECE(ct.UniformBins(3)),
                "DebiasedL2": ct.DebiasedL2(ct.UniformBins(3)),
            }
        several = ct.CoxScore(), ct.Kuiper(), ct.DebiasedL2(), ct.MultiScale(), ct.ScoreGap("brier")
        named = {type(statistic).__name__: statistic for statistic in several}
        return {"ECE": ct.ECE(), **named}


WAYS = {
    "independent": alone,
    "a shared label": shared_label,
    "normal, correlation .7": partial(normal, 0.7),
    "right together": shared_correctness,
    "half by label, half by being right": half_and_half,
}
EVENT = ct.OneVsRest(1)
DESIGNS = [
    *(
        Design(f"{way}, {words}", 2, partial(of_rows, 2, shape, *clusters, coupling), EVENT)
        for way, coupling in WAYS.items()
        for words, shape, clusters in (
            ("100 × 20, uniform", 1.0, (100, 20)),
            ("50 × 6, U-shaped", 0.5, (50, 6)),
            ("40 of 1 to 15, uniform", 1.0, (40, (1, 16))),
        )
    ),
    Design("150 pairs with one case, 12 × 6 copies", 2, partial(pairs_and_copies), EVENT),
    *(
        Design(
            f"{way}, 60 × 5, {k} classes, {lens!r}",
            k, partial(of_rows, k, 1.0, 60, 5, WAYS[way]), lens,
        )
        for way in ("a shared label", "right together")
        for k, lens in ((3, ct.Canonical()), (3, ct.TopK(1)), (10, ct.TopK(1)))
    ),
]  # fmt: skip
#: Hospitals, patients of each, rows of each, and the shares of variance of both.
HOSPITALS = {
    "20 × 10 × 4, shares .05, .5": (20, 10, 4, (0.05, 0.5)),
    "20 × 10 × 4, shares .2, .3": (20, 10, 4, (0.2, 0.3)),
    "40 × 5 × 3, shares .2, .3": (40, 5, 3, (0.2, 0.3)),
    "8 × 25 × 4, shares .2, .3": (8, 25, 4, (0.2, 0.3)),
    "30 hospitals of sizes 1 / rank, 180 patients, 4 rows, shares .2, .3": (30, -6, 4, (0.2, 0.3)),
    "20 × 10 × 4, shares 0, .5": (20, 10, 4, (0.0, 0.5)),
}
LEVELS = {
    "hospital": [*HOSPITALS],
    "hospital and patient": [[*HOSPITALS][1]],
    "patient": [[*HOSPITALS][j] for j in (0, 1, 4, 5)],
}
NESTED = [
    Design(f"{words}: `clusters=` {level}", 2, partial(nested, *HOSPITALS[words], level), EVENT)
    for level, kinds in LEVELS.items()
    for words in kinds
]
#: Patients alone are named although hospitals depend: nothing is promised.
TOO_FINE = NESTED[-4:-1]
ENDING = [
    Design(f"1000 borrowers, {words}", 2, partial(loans, 1000, quarters), EVENT)
    for words, quarters in (("up to six quarters each", 6), ("the first quarter of each", 1))
]
#: Sizes of clusters depend on outcomes: audits call a rejection in doubt, nothing is promised.
IN_DOUBT = ENDING[:1]
POWER = Design("independent, 50 × 5, slope 0.6", 2, partial(sloped), EVENT)
DATA = {design.name: design for design in [*DESIGNS, *NESTED, *ENDING, POWER]}


def tests(design):
    return {name: repr(statistic) for name, statistic in design.tests.items()} | {"interval": 1}


def measure(design, wanted, rng):
    """Return whether each test rejects, and whether the interval of the ECE leaves 0 out."""
    probs, labels, clusters = design.draw(rng)
    seed, answers = int(rng.integers(2**63)), {}
    facts = {"clusters": clusters, "lens": design.lens, "n_resamples": B, "rng": seed}
    facts["as_is"] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in wanted:
            if name == "interval":
                bins = ct.UniformBins(3 if design.lens == ct.Canonical() else 15)
                low = ct.confidence_interval(probs, labels, ct.ECE(bins), **facts).low
                answers[name] = (low > 0.0,)
            else:
                test = ct.calibration_test(probs, labels, design.tests[name], **facts)
                answers[name] = (test.pvalue <= ALPHA,)
    return answers


def page(found):
    """Return the page, and the cells that broke their promise."""
    columns = [*DESIGNS[0].tests, "interval"]
    open_ended = [POWER, *TOO_FINE, *IN_DOUBT]
    claims = sum(len(tests(DATA[name])) for name in found.shown if DATA[name] not in open_ended)
    rows, levels, ends, power, rates, broken = [], [], [], [], [], []
    for name in found.shown:
        cells, design = [], DATA[name]
        for test in columns:
            means = found.means(name, test) if test in tests(DATA[name]) else None
            if means is None:
                cells.append("")
                continue
            rate = means[0]
            cells.append(f"{rate:.3f}")
            if design not in open_ended:
                rates.append(rate)
                if rate > largest_rate(LIMIT, found.trials(name, test), claims):
                    cells[-1] = f"**{rate:.3f}**"
                    broken.append(f"{name}, {test}: {rate:.3f}")
        kind = (
            power if design is POWER
            else levels if design in NESTED
            else ends if design in ENDING
            else rows
        )  # fmt: skip
        kind.append([name, found.sets(name), *cells])
    head = ["how rows depend, clusters", "data sets", *columns]
    words = {"mean": np.mean(rates), "worst": max(rates), "count": len(rates)}
    text = HEADER.format(**words, **opening(found))
    parts = [*table(head, rows), "", LEVELS_WORDS, *table(head, levels), "", ENDING_WORDS]
    parts += table(head, ends)
    text += "\n".join([*parts, "", "## Power\n", *table(head, power)])
    return text.rstrip() + "\n", broken


HEADER = """# Type-I error with clusters

Calibrated models whose rows depend on each other within clusters are called miscalibrated in
{mean:.3f} of data sets at the 5 % level, on average over {count} cells below, and in {worst:.3f} in
the worst. The last column is how often the 95 % interval of the ECE leaves 0 out.

Rows of a cluster may share the draw of their label; normal numbers from which labels are cut; or
whether the likeliest label is right, as easy and difficult cases do. `100 × 20` means 100 clusters
of 20 rows. "U-shaped" predictions are Beta(½, ½), for several classes uniform on the simplex.
What is done about it: {{doc}}`concepts/designs`. At most 0.07 is wanted; a rate in bold exceeds it
by more than chance allows, one false alarm in a thousand such studies.

{made}

"""

LEVELS_WORDS = """## Patients in hospitals: which column to name

Hospitals × patients of each × rows of each. Normal numbers behind the labels have a part for the
hospital and one for the patient, with the shares of variance that are named. Where rows of a
hospital depend, name the hospital, or both columns. The column of patients alone is right only
where hospitals do not depend (share 0); the other lines with patients alone show what the mistake
costs. They are not promised, and do not count in the rates above.
"""
ENDING_WORDS = """## Rows that end with the event

Each borrower has one row a quarter until the default, and every row asks whether it comes within
four quarters. Borrowers with a default have fewer rows: sizes of clusters depend on outcomes, and
no null for clusters allows for that. An audit compares outcomes of small and large clusters and
reports such a rejection as *in doubt*; the first line is not promised, and does not count in the
rates above. The first row of each cluster is a sample whose size depends on nothing.
"""
STUDY = Study("clustered", DATA, tests, measure, page, sets=400, quick=4)
if __name__ == "__main__":
    run(STUDY)
