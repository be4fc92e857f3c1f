"""Size of tests and intervals of cross-validated rows, of series, and of two columns of clusters.

``python -m validation.dependent_rows`` writes ``docs/dependent.md``; ``--quick`` is a small version
that prints. Either fails when calibrated models are rejected more often than the limit of their
design at the 5 % level by more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, B = 0.05, 199


def logistic(x, y):
    """Return a logistic regression with penalty 1, as a function of features."""
    design = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag(np.append(1e-8, np.ones(x.shape[1])))
    b = np.zeros(design.shape[1])
    for _ in range(25):
        m = expit(design @ b)
        information = (design * (m * (1.0 - m))[:, None]).T @ design + penalty
        step = np.linalg.solve(information, design.T @ (y - m) - penalty @ b)
        b += step
        if np.abs(step).max() < 1e-8:
            break
    return lambda z: expit(b[0] + z @ b[1:])


def base_rate(x, y):
    """Return the share of events, whatever the features."""
    return lambda z: np.full(len(z), y.mean())


def true_model(x, y):
    """Return what is true: nothing is fitted."""
    return lambda z: expit(z.sum(axis=1) / np.sqrt(z.shape[1]) - 1.0)


def too_steep(x, y):
    """Return a logistic regression whose slopes are multiplied by 1.6."""
    fitted = logistic(x, y)
    centre = logit(fitted(np.zeros((1, x.shape[1]))))[0]
    return lambda z: expit(centre + 1.6 * (logit(fitted(z)) - centre))


def folded(learner, n, d, k, rng, stratified=False):
    """Cross-validate a learner on rows of d features."""
    x = rng.standard_normal((n, d))
    strength = 0.0 if learner is base_rate else 1.0 / np.sqrt(d)
    y = (rng.random(n) < expit(strength * x.sum(axis=1) - 1.0)).astype(int)
    fold = rng.permutation(np.arange(n) % k)
    if stratified:
        fold[np.lexsort((rng.random(n), y))] = np.arange(n) % k
    p = np.empty(n)
    for j in range(k):
        p[fold == j] = learner(x[fold != j], y[fold != j])(x[fold == j])
    return np.clip(p, 1e-9, 1.0 - 1e-9), y, {"folds": fold}


def site_rates(site, y, sites, rows):
    """Return the rate of every site, shrunk towards the mean by so many rows."""
    events = np.bincount(site, y, sites) + rows * y.mean()
    return events / (np.bincount(site, minlength=sites) + rows)


def memorised(n, sites, rows, k, rng, fresh=False):
    """Cross-validate shrunk rates of sites, or let those of n − n / k rows predict fresh rows."""
    level, site = 0.5 * rng.standard_normal(sites) - 1.0, rng.integers(sites, size=(2, n))
    y = (rng.random((2, n)) < expit(level[site])).astype(int)
    if fresh:
        known = n - n // k
        return site_rates(site[0, :known], y[0, :known], sites, rows)[site[1]], y[1], {}
    fold, p = rng.permutation(np.arange(n) % k), np.empty(n)
    for j in range(k):
        inside = fold == j
        rates = site_rates(site[0, ~inside], y[0, ~inside], sites, rows)
        p[inside] = rates[site[0, inside]]
    return p, y[0], {"folds": fold}


def latent(correlation, n, h, rng, slope=1.0):
    """Forecast h steps ahead whether a latent autoregression will be positive."""
    z, noise = np.zeros(n + h), rng.standard_normal(n + h)
    z[0] = noise[0]
    for t in range(1, n + h):
        z[t] = correlation * z[t - 1] + np.sqrt(1.0 - correlation**2) * noise[t]
    p = ndtr(correlation**h * z[:n] / np.sqrt(1.0 - correlation ** (2 * h)))
    return expit(logit(np.clip(p, 1e-9, 1.0 - 1e-9)) / slope), (z[h:] > 0).astype(int), ahead(h)


def window(n, h, rng):
    """Forecast whether an event of slowly changing rate occurs in the next h steps."""
    rate = expit(-2.5 + np.sin(np.arange(n + h) / 30.0 + rng.uniform(0, 6)))
    happened = rng.random(n + h) < rate
    p = 1.0 - np.array([(1.0 - rate[t : t + h]).prod() for t in range(n)])
    return p, np.array([happened[t : t + h].any() for t in range(n)]).astype(int), ahead(h)


def markov(n, h, rng):
    """Forecast the state of a Markov chain h steps ahead, which stays with .8 or .7."""
    step = np.array([[0.8, 0.2], [0.3, 0.7]])
    state = np.zeros(n + h, dtype=int)
    for t in range(1, n + h):
        state[t] = rng.random() < step[state[t - 1], 1]
    return np.linalg.matrix_power(step, h)[state[:n], 1], state[h:], ahead(h)


def easy_weeks(n, h, rng):
    """Blocks of h rows in which the likelier labels are right or wrong together."""
    p = rng.uniform(0.02, 0.98, n)
    u = rng.random(n // h + 2)[(np.arange(n) + rng.integers(h)) // h]
    return p, np.where(p >= 0.5, u < p, u >= 1.0 - p).astype(int), ahead(h)


def panel(stations, days, h, shared, rng):
    """Forecasts for stations that share a part of their noise on each day."""
    noise = np.sqrt(shared) * rng.standard_normal((days + h, 1))
    noise = noise + np.sqrt(1.0 - shared) * rng.standard_normal((days + h, stations))
    z = np.zeros_like(noise)
    z[0] = noise[0]
    for t in range(1, days + h):
        z[t] = 0.8 * z[t - 1] + 0.6 * noise[t]
    p = ndtr(0.8**h * z[:days] / np.sqrt(1.0 - 0.8 ** (2 * h)))
    time = np.repeat(np.arange(days), stations)
    return p.ravel(), (z[h:] > 0).astype(int).ravel(), {"horizon": h, "time": time}


def ahead(h):
    return {"horizon": h}


def normal_labels(p, a, b, shares, rng):
    """Labels cut from normal numbers with a part for each first and second cluster."""
    z = np.sqrt(max(0.0, 1.0 - sum(shares))) * rng.standard_normal(p.size)
    for group, share in zip((a, b), shares, strict=True):
        z += np.sqrt(share) * rng.standard_normal(group.max() + 1)[group]
    return (z < ndtri(p)).astype(int)


def right_together(p, a, b, shares, rng):
    """Whether the likelier label is right depends on both clusters, as easy and difficult cases."""
    right = normal_labels(np.maximum(p, 1.0 - p), a, b, shares, rng)
    return np.where(p >= 0.5, right, 1 - right)


def easy_and_alike(p, a, b, shares, rng):
    """Readers share labels, patients whether the likelier label is right."""
    u = np.where(rng.random(p.size) < 0.5, rng.random(a.max() + 1)[a], 0.0)
    second = rng.random(b.max() + 1)[b]
    second = np.where(p >= 0.5, second, 1.0 - second)
    return (np.where(u > 0.0, u, second) < p).astype(int)


def crossed(readers, patients, draw, shares, rng, slope=1.0, some=0):
    """Readers who look at all patients, or at ``some`` of the readers for each patient."""
    a, b = np.divmod(np.arange(readers * patients), patients)
    if some:
        b = np.repeat(np.arange(patients), some)
        a = np.concatenate([rng.choice(readers, some, replace=False) for _ in range(patients)])
    eta = 0.5 * rng.standard_normal(readers)[a] + 0.8 * rng.standard_normal(patients)[b]
    eta = eta + 0.8 * rng.standard_normal(a.size)
    y = draw(expit(slope * eta), a, b, shares, rng)
    return expit(eta), y, {"clusters": {"reader": a, "patient": b}}


def views(readers, patients, rng):
    """One label a patient, seen through the signal of every reader."""
    a, b = np.divmod(np.arange(readers * patients), patients)
    y = rng.integers(0, 2, patients)[b]
    p = expit(1.5 * (1.5 * (y - 0.5) + rng.standard_normal(a.size)))
    return p, y, {"clusters": {"reader": a, "patient": b}}


@dataclass(frozen=True)
class Design:
    """Rows that depend on each other, the most often that a test may reject, or their power.

    ``fresh`` names the design of fresh rows, whose rate plus 0.03 is the limit in its place.
    """

    name: str
    draw: partial
    limit: float | None
    fresh: str = ""


#: Rows, sites, rows of shrinkage, and folds.
SITES = {
    "rates of 50 sites, 1000 rows, 2 folds": (1000, 50, 20, 2),
    "rates of 50 sites, 1000 rows, 10 folds": (1000, 50, 20, 10),
    "rates of 100 sites, 2000 rows, 10 folds": (2000, 100, 20, 10),
}
DESIGNS = [
    Design("folds: true model, 500 rows, 10 folds", partial(folded, true_model, 500, 2, 10), 0.07),
    Design("folds: base rate, 500 rows, 10 folds", partial(folded, base_rate, 500, 2, 10), 0.07),
    *(
        Design(f"folds: logistic, {d} features, {n} rows, {k} folds{' stratified' * s}",
               partial(folded, logistic, n, d, k, stratified=s), 0.07 + 0.01 * (d > 2))
        for n, d, k, s in ((100, 2, 5, False), (500, 2, 10, False), (500, 2, 10, True),
                           (500, 10, 10, False))
    ),
    *(
        Design(f"folds: {name}", partial(memorised, *size), 0.07, f"fresh: {name}")
        for name, size in SITES.items()
    ),
    Design("horizon: latent .8, 300 rows, h = 2", partial(latent, 0.8, 300, 2), 0.075),
    Design("horizon: latent .95, 300 rows, h = 7", partial(latent, 0.95, 300, 7), 0.075),
    Design("horizon: latent .95, 1000 rows, h = 24", partial(latent, 0.95, 1000, 24), 0.075),
    Design("horizon: Markov chain, 300 rows, h = 7", partial(markov, 300, 7), 0.075),
    Design("horizon: event in a window of 5, 300 rows", partial(window, 300, 5), 0.075),
    Design("horizon: right together in weeks, 300 rows", partial(easy_weeks, 300, 7), 0.075),
    Design("horizon: 15 stations, 60 days, h = 2", partial(panel, 15, 60, 2, 0.5), 0.07),
    *(
        Design(f"two columns: {words}", partial(crossed, *size, draw, shares, **more), 0.07)
        for words, size, draw, shares, more in (
            ("10 × 50 independent", (10, 50), normal_labels, (0.0, 0.0), {}),
            ("10 × 50 normal .3, .3", (10, 50), normal_labels, (0.3, 0.3), {}),
            ("10 × 50 normal .1, .6", (10, 50), normal_labels, (0.1, 0.6), {}),
            ("30 × 30 normal .3, .3", (30, 30), normal_labels, (0.3, 0.3), {}),
            ("60 × 4 of 12 normal .2, .5", (12, 60), normal_labels, (0.2, 0.5), {"some": 4}),
            ("10 × 50 right together .3, .3", (10, 50), right_together, (0.3, 0.3), {}),
            ("10 × 50 labels and being right", (10, 50), easy_and_alike, (), {}),
        )
    ),
    Design("two columns: 10 × 50 views", partial(views, 10, 50), 0.07),
    *(
        Design(f"fresh: {name}", partial(memorised, *size, fresh=True), None)
        for name, size in SITES.items()
    ),
    Design("power: folds, slopes × 1.6, 500 rows", partial(folded, too_steep, 500, 2, 10), None),
    Design("power: horizon 7, 300 rows, slope 0.6", partial(latent, 0.95, 300, 7, slope=0.6), None),
    Design("power: two columns, 10 × 50, slope 0.6",
           partial(crossed, 10, 50, normal_labels, (0.0, 0.0), slope=0.6), None),
]  # fmt: skip
DATA = {design.name: design for design in DESIGNS}
STATISTICS = {
    "ECE": ct.ECE(),
    "CoxScore": ct.CoxScore(),
    "Kuiper": ct.Kuiper(),
    "DebiasedL2": ct.DebiasedL2(),
    "MultiScale": ct.MultiScale(),
}
COLUMNS = [*STATISTICS, "slope", "ignored"]


def tests(design):
    return {name: repr(s) for name, s in STATISTICS.items()} | {"slope": 1, "ignored": 1}


def measure(design, wanted, rng):
    """Return whether each test rejects; "ignored" is CoxScore as if rows were independent."""
    p, y, facts = design.draw(rng)
    kind, answers = {"n_resamples": B, "rng": int(rng.integers(2**63)), "as_is": True}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in wanted:
            if name == "slope":
                try:
                    pvalue = ct.cox_recalibration(p, y, as_is=True, **facts).lr_slope_pvalue
                except ct.StatisticError:  # one prediction for all: there is no slope
                    pvalue = 1.0
            elif name == "ignored":
                pvalue = ct.calibration_test(p, y, ct.CoxScore(), **kind).pvalue
            else:
                pvalue = ct.calibration_test(p, y, STATISTICS[name], **facts, **kind).pvalue
            answers[name] = (pvalue <= ALPHA,)
    return answers


def page(found):
    """Return the page, and the cells that broke their promise."""
    sized = [name for name in found.shown if DATA[name].limit is not None]
    claims = len(sized) * (len(COLUMNS) - 1)
    rows, fresh, power, rates, broken = [], [], [], [], []
    for name in found.shown:
        cells, limit = [], DATA[name].limit
        for test in COLUMNS:
            means, limit = found.means(name, test), DATA[name].limit
            cells.append("" if means is None else f"{means[0]:.3f}")
            if means is None or limit is None or test == "ignored":
                continue
            rates += [] if DATA[name].fresh else [means[0]]
            beside = found.means(DATA[name].fresh, test) if DATA[name].fresh else None
            if beside is not None:
                limit = max(limit, beside[0] + 0.03)
            if means[0] > largest_rate(max(limit, 0.08 * (test == "slope")),
                                       found.trials(name, test), claims):  # fmt: skip
                cells[-1] = f"**{means[0]:.3f}**"
                broken.append(f"{name}, {test}: {means[0]:.3f}")
        kind = rows if limit is not None else fresh if name.startswith("fresh") else power
        kind.append([name.removeprefix("fresh: "), found.sets(name), *cells])
    head = ["rows", "data sets", *COLUMNS]
    words = {"mean": np.mean(rates), "worst": max(rates), "count": len(rates)}
    text = HEADER.format(**words, **opening(found))
    text += "\n".join([*table(head, rows), "", FRESH, *table(head, fresh), "",
                       "## Power\n", *table(head, power)])  # fmt: skip
    return text.rstrip() + "\n", broken


HEADER = """# Type-I error with folds, horizons and crossed clusters

Calibrated models whose rows are cross-validated, forecast several steps ahead, or in two columns of
clusters are called miscalibrated in {mean:.3f} of data sets at the 5 % level, on average over
{count} cells below, and in {worst:.3f} in the worst. The column "slope" is the test of Cox's slope,
the last one the CoxScore of the same rows as if they were independent draws.

What is done about it: {{doc}}`concepts/dependent`. A rate in bold exceeds 0.07 (0.075 of series,
0.08 of ten features and of slopes) by more than chance allows, one false alarm in a thousand such
studies.

{made}

"""

FRESH = """## Fresh rows beside folds

Models that memorise groups of rows are not calibrated: fresh rows reject them, here from models
that were fitted to as many rows as the models of the folds. Folds of such models (rates of sites,
shrunk to the mean by 20 rows) are tested within folds, and the limit is the rate of fresh rows plus
0.03. They do not count in the rates above. More learners, and repeated folds: {doc}`folds`.
"""
STUDY = Study("dependent", DATA, tests, measure, page, sets=400, quick=4)
if __name__ == "__main__":
    run(STUDY)
