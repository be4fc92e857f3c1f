"""LeNet-5 in NumPy, small enough to train on a part of MNIST in minutes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import softmax

SHAPES = ((25, 6), (6 * 25, 16), (16 * 25, 120), (120, 84), (84, 10))
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
#: Images that pass through the network together when it is only evaluated.
AT_ONCE = 500


class LeNet:
    """Convolution 6@5 (padded), pool, convolution 16@5, pool, 120, 84, 10 outputs; all ReLU.

    Parameters are single precision, uniform within ± 1/√fan-in; stochastic gradient descent with
    momentum.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.weights = [
            self.rng.uniform(-1.0, 1.0, shape).astype(np.float32) / np.float32(np.sqrt(shape[0]))
            for shape in SHAPES
        ]
        self.biases = [
            self.rng.uniform(-1.0, 1.0, shape[1]).astype(np.float32) / np.float32(np.sqrt(shape[0]))
            for shape in SHAPES
        ]
        self.speed = [np.zeros_like(p) for p in (*self.weights, *self.biases)]

    def logits(self, images: np.ndarray) -> np.ndarray:
        """Return the outputs for images of shape (n, 28, 28)."""
        parts = [
            self._forward(images[start : start + AT_ONCE])[-1][0]
            for start in range(0, len(images), AT_ONCE)
        ]
        return np.concatenate(parts).astype(np.float64)

    def train(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        *,
        epochs: int,
        rate: float = 0.05,
        momentum: float = 0.9,
        batch: int = 64,
    ) -> Iterator[int]:
        """Train, and yield after every epoch."""
        for epoch in range(epochs):
            order = self.rng.permutation(len(images))
            for start in range(0, len(images), batch):
                rows = order[start : start + batch]
                gradients = self._gradients(images[rows], labels[rows])
                for p, g, v in zip(
                    (*self.weights, *self.biases), gradients, self.speed, strict=True
                ):
                    v *= momentum
                    v -= rate * g
                    p += v
            yield epoch

    def _forward(self, images: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """Return for each layer its output (pooled, rectified) and what its gradient needs."""
        x = np.pad(images, ((0, 0), (2, 2), (2, 2)))[..., None]
        layers: list[tuple[np.ndarray, ...]] = []
        for layer in (0, 1):
            columns = _patches(x)
            wide = columns @ self.weights[layer] + self.biases[layer]
            x = np.maximum(_pooled(wide), 0.0)
            layers.append((x, columns, wide))
        x = x.reshape(len(x), -1)
        for layer in (2, 3, 4):
            before = x
            x = before @ self.weights[layer] + self.biases[layer]
            if layer < 4:
                x = np.maximum(x, 0.0)
            layers.append((x, before))
        return layers

    def _gradients(self, images: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        layers = self._forward(images)
        delta = softmax(layers[-1][0], axis=1)
        delta[np.arange(len(labels)), labels] -= 1.0
        delta /= len(labels)
        by_weight: list[np.ndarray] = [np.empty(0)] * 5
        by_bias: list[np.ndarray] = [np.empty(0)] * 5
        for layer in (4, 3, 2):
            before = layers[layer][1]
            by_weight[layer], by_bias[layer] = before.T @ delta, delta.sum(axis=0)
            delta = (delta @ self.weights[layer].T) * (before > 0.0)
        delta = delta.reshape(layers[1][0].shape)
        for layer in (1, 0):
            x, columns, wide = layers[layer]
            spread = _unpooled(delta * (x > 0.0), wide, x)
            flat = spread.reshape(-1, spread.shape[-1])
            by_weight[layer] = columns.reshape(-1, columns.shape[-1]).T @ flat
            by_bias[layer] = flat.sum(axis=0)
            if layer == 1:
                delta = _gathered(spread @ self.weights[1].T, layers[0][0].shape)
        return [*by_weight, *by_bias]


def _patches(x: np.ndarray) -> np.ndarray:
    """Return all 5 × 5 patches, shape (n, h − 4, w − 4, 25 c)."""
    windows = sliding_window_view(x, (5, 5), axis=(1, 2))
    return np.ascontiguousarray(windows).reshape(*windows.shape[:3], -1)


def _gathered(patches: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Add patches back to where they were taken from: the transpose of ``_patches``."""
    n, h, w, c = shape
    x = np.zeros(shape, dtype=patches.dtype)
    parts = patches.reshape(n, h - 4, w - 4, c, 5, 5)
    for i in range(5):
        for j in range(5):
            x[:, i : i + h - 4, j : j + w - 4] += parts[..., i, j]
    return x


def _pooled(x: np.ndarray) -> np.ndarray:
    """Return the maxima of 2 × 2 squares."""
    return np.asarray(np.maximum.reduce([x[:, i::2, j::2] for i, j in CORNERS]))


def _unpooled(delta: np.ndarray, x: np.ndarray, pooled: np.ndarray) -> np.ndarray:
    """Send gradients back to the maxima, the first of equal ones: transposes ``_pooled``."""
    spread = np.zeros_like(x)
    left = delta.copy()
    for i, j in CORNERS:
        hit = x[:, i::2, j::2] == pooled
        spread[:, i::2, j::2] = left * hit
        left[hit] = 0.0
    return spread
