"""Train the classifier whose predictions are embedded in caltest.

A small network on scikit-learn's copy of the UCI handwritten digits (1797 images of 8 × 8 pixels,
CC BY 4.0) with Gaussian noise of standard deviation 0.3 added to the pixels: without the noise the
network never becomes overconfident. The training arc is the one of Vaicenavicius et al. (2019,
Fig. 3): underconfident at first, close to calibrated where the validation likelihood is best,
overconfident at the end. Predictions of the last two stages are kept.

Run ``python scripts/train_digits.py`` (needs scikit-learn) to write ``caltest/data/digits.npz``
again; the result is the same up to rounding in the matrix products.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).parents[1] / "caltest" / "data" / "digits.npz"
HIDDEN, CLASSES, EPOCHS, BATCH, RATE = 64, 10, 40, 32, 3e-3


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(parameters, x):
    w1, b1, w2, b2 = parameters
    hidden = np.maximum(x @ w1 + b1, 0.0)
    return hidden, softmax(hidden @ w2 + b2)


def gradients(parameters, x, y):
    hidden, probs = forward(parameters, x)
    delta = probs.copy()
    delta[np.arange(len(y)), y] -= 1.0
    delta /= len(y)
    back = (delta @ parameters[2].T) * (hidden > 0.0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ delta, delta.sum(axis=0)]


def train(x, y, seed):
    """Yield the parameters after every epoch (He initialisation, Adam)."""
    rng = np.random.default_rng(seed)
    parameters = [
        rng.normal(0.0, np.sqrt(2.0 / x.shape[1]), (x.shape[1], HIDDEN)),
        np.zeros(HIDDEN),
        rng.normal(0.0, np.sqrt(2.0 / HIDDEN), (HIDDEN, CLASSES)),
        np.zeros(CLASSES),
    ]
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            step += 1
            for p, g, m, v in zip(
                parameters, gradients(parameters, x[rows], y[rows]), first, second, strict=True
            ):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= RATE * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        yield [p.copy() for p in parameters]


def main():
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0 + np.random.default_rng(99).normal(0.0, 0.3, images.shape)
    shuffled = np.random.default_rng(0).permutation(len(images))
    fit, validation, test = shuffled[:600], shuffled[600:897], shuffled[897:]
    history = list(train(images[fit], labels[fit], seed=0))
    losses = []
    for parameters in history:
        probs = forward(parameters, images[validation])[1]
        losses.append(-np.log(probs[np.arange(len(probs)), labels[validation]]).mean())
    stages = {"best": history[int(np.argmin(losses))], "overfit": history[-1]}
    arrays = {
        "validation_labels": labels[validation].astype(np.uint8),
        "test_labels": labels[test].astype(np.uint8),
    }
    for name, parameters in stages.items():
        for part, rows in (("validation", validation), ("test", test)):
            arrays[f"{part}_{name}"] = forward(parameters, images[rows])[1].astype(np.float32)
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, **arrays)
    accuracy = (arrays["test_overfit"].argmax(axis=1) == arrays["test_labels"]).mean()
    print(f"best epoch {int(np.argmin(losses)) + 1}, validation nLL {min(losses):.4f}")
    print(f"test accuracy after {EPOCHS} epochs {accuracy:.4f}")
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
