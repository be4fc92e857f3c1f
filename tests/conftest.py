"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20190416)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of optional real data, named by the environment variable CALTEST_DATA."""
    folder = os.environ.get("CALTEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set CALTEST_DATA to the folder of real predictions to run this")
    return Path(folder)
