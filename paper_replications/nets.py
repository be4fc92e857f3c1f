"""A small network on noisy handwritten digits, in NumPy: the default for what the papers train.

Gaussian noise of standard deviation 0.3 on the pixels of the UCI digits: without it the network
never becomes overconfident. With it, forty epochs show the arc of the papers: underconfident at
first, about calibrated near the best validation likelihood, overconfident at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from scipy.special import log_softmax, softmax

import caltest as ct

Parameters = list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Split:
    """Images and labels for training, validation and test."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


@cache
def digits(noise: float = 0.3, n_train: int = 600, n_validation: int = 297) -> Split:
    """Return the digits, shuffled and with noise on the pixels."""
    with np.load(str(files("paper_replications") / "data" / "digits.npz")) as stored:
        images, labels = stored["images"] / 16.0, stored["labels"].astype(np.int64)
    images = images + np.random.default_rng(99).normal(0.0, noise, images.shape)
    order = np.random.default_rng(0).permutation(len(images))
    cuts = np.split(order, [n_train, n_train + n_validation])
    return Split(*((images[rows], labels[rows]) for rows in cuts))


def logits(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return the outputs of the network before the softmax."""
    w1, b1, w2, b2 = parameters
    return np.maximum(x @ w1 + b1, 0.0) @ w2 + b2


def train(
    x: np.ndarray,
    y: np.ndarray,
    *,
    classes: int = 10,
    epochs: int = 40,
    seed: int = 0,
    hidden: int = 64,
    rate: float = 3e-3,
    batch: int = 32,
    decay: float = 0.0,
) -> Iterator[Parameters]:
    """Yield the parameters after every epoch: one hidden layer, He initialisation, Adam.

    ``decay`` times the parameters is added to their gradient, as in Adam with weight decay.
    """
    rng = np.random.default_rng(seed)
    parameters = [
        rng.normal(0.0, np.sqrt(2.0 / x.shape[1]), (x.shape[1], hidden)),
        np.zeros(hidden),
        rng.normal(0.0, np.sqrt(2.0 / hidden), (hidden, classes)),
        np.zeros(classes),
    ]
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            rows = order[start : start + batch]
            step += 1
            gradients = _gradients(parameters, x[rows], y[rows])
            for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
                if decay:
                    g = g + decay * p
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        yield [p.copy() for p in parameters]


def _gradients(parameters: Parameters, x: np.ndarray, y: np.ndarray) -> Parameters:
    hidden = np.maximum(x @ parameters[0] + parameters[1], 0.0)
    delta = softmax(hidden @ parameters[2] + parameters[3], axis=1)
    delta[np.arange(len(y)), y] -= 1.0
    delta /= len(y)
    back = (delta @ parameters[2].T) * (hidden > 0.0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ delta, delta.sum(axis=0)]


@cache
def history(seed: int) -> tuple[Parameters, ...]:
    """Return the parameters after each of the forty epochs on the noisy digits."""
    return tuple(train(*digits().train, seed=seed))


def nll(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean negative log-likelihood of logits."""
    return float(-log_softmax(scores, axis=1)[np.arange(len(labels)), labels].mean())


def best_epoch(seed: int) -> int:
    """Return the number (from 0) of the epoch with the best validation likelihood."""
    x, y = digits().validation
    return int(np.argmin([nll(logits(p, x), y) for p in history(seed)]))


def predictions(seed: int, epoch: int, part: str = "test") -> ct.Predictions:
    """Return the predictions after an epoch (from 0; −1 is the last) on a part of the digits."""
    x, y = getattr(digits(), part)
    return ct.Predictions.of(logits(history(seed)[epoch], x), y, from_logits=True)


def scaled(seed: int, epoch: int) -> tuple[ct.Predictions, float]:
    """Return the test predictions after temperature scaling on the validation part, and T."""
    from caltest.recalibration import TemperatureScaling

    fitted = TemperatureScaling().fit(predictions(seed, epoch, "validation"))
    return fitted(predictions(seed, epoch)), fitted.map.temperature  # type: ignore[attr-defined]


def accuracy(data: ct.Predictions) -> float:
    """Return the share of rows whose largest prediction is right."""
    return float((data.probs.argmax(axis=1) == data.labels).mean())


def confidence(data: ct.Predictions) -> float:
    """Return the mean largest prediction."""
    return float(data.probs.max(axis=1).mean())
