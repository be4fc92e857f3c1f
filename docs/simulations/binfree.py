"""Power of the bin-free statistics: prints the two tables of concepts/binfree.md.

Run from the root of the repository: ``python docs/simulations/binfree.py``.
"""

import numpy as np

import caltest as ct

N, RUNS, RESAMPLES = 500, 400, 199


def tilted(probs, power):
    truth = probs**power
    return truth / truth.sum(axis=1, keepdims=True)


def shifted(p, by):
    return 1 / (1 + (1 / p - 1) * np.exp(-by))


TWO_CLASSES = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: tilted(np.column_stack([p, 1 - p]), 0.7)[:, 0],
    "underconfident": lambda p: tilted(np.column_stack([p, 1 - p]), 1.4)[:, 0],
    "shift": lambda p: shifted(p, 0.25),
    "three waves": lambda p: np.clip(p + 0.15 * np.sin(6 * np.pi * p), 0, 1),
    "bump": lambda p: np.clip(p + 0.2 * ((p > 0.6) & (p < 0.75)), 0, 1),
}
ONE_LENS = [
    (s, ct.OneVsRest(0))
    for s in (
        ct.ECE(),
        ct.KolmogorovSmirnov(),
        ct.Kuiper(),
        ct.CORP(),
        ct.SmoothECE(),
        ct.ScoreGap(),
    )
]
VECTORS = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: tilted(p, 0.85),
    "underconfident": lambda p: tilted(p, 1.2),
    "labels uniform at random, 15 %": lambda p: 0.85 * p + 0.15 / p.shape[1],
    "labels all class 0, 15 %": lambda p: 0.85 * p + 0.15 * np.eye(p.shape[1])[0],
}
WHOLE = [
    (ct.ECE(), ct.TopK(1)),
    (ct.Kuiper(), ct.TopK(1)),
    (ct.ECE(ct.VarianceTree(20)), ct.Canonical()),
    (ct.ScoreGap("brier"), ct.Canonical()),
    (ct.ScoreGap("log"), ct.Canonical()),
    (ct.ScoreGap("spherical"), ct.Canonical()),
]


def table(truths, pairs, draw):
    print("|", " | ".join(["", *(f"{s!r} {lens!r}" for s, lens in pairs)]), "|")
    for name, truth in truths.items():
        rejected = np.zeros(len(pairs))
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            probs = draw(rng)
            law = truth(probs[:, 0]) if probs.shape[1] == 2 else truth(probs)
            law = np.column_stack([law, 1 - law]) if law.ndim == 1 else law
            labels = (law.cumsum(axis=1)[:, :-1] <= rng.random((N, 1))).sum(axis=1)
            for j, (statistic, lens) in enumerate(pairs):
                test = ct.calibration_test(
                    probs, labels, statistic, lens=lens, null=ct.RedrawLabels(),
                    n_resamples=RESAMPLES, rng=seed,
                )  # fmt: skip
                rejected[j] += test.pvalue <= 0.05
        print("|", " | ".join([name, *(f"{r:.2f}" for r in rejected / RUNS)]), "|", flush=True)


def two_columns(rng):
    p = rng.random(N)
    return np.column_stack([p, 1 - p])


if __name__ == "__main__":
    table(TWO_CLASSES, ONE_LENS, two_columns)
    table(VECTORS, WHOLE, lambda rng: rng.dirichlet(np.ones(10), N))
