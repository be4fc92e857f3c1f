"""Forecast revisions: underreaction

A forecaster of 50 questions moves half as far as the news warrants. No outcome is needed.
"""

import numpy as np
from scipy.special import ndtr

import caltest as ct

rng = np.random.default_rng(3)
news = rng.standard_normal((50, 30)).cumsum(axis=1) / np.sqrt(30)
right = ndtr((rng.normal(0, 0.7, (50, 1)) + news) / np.sqrt(1.0 - np.arange(30) / 30))
slow = right.copy()
for day in range(1, 30):
    slow[:, day] = slow[:, day - 1] + 0.5 * (right[:, day] - slow[:, day - 1])
question, day = np.repeat(np.arange(50), 30), np.tile(np.arange(30), 50)
picture = ct.Revisions(question, day, slow.ravel()).test().plot()
