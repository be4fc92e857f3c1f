"""Fixtures of pytest, which finds them by the entry point ``pytest11``.

Nothing but pytest is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


def _assert_calibrated() -> Callable[..., object]:
    """Fail unless predictions are calibrated; see :func:`caltest.testing.assert_calibrated`."""
    from caltest.testing import assert_calibrated

    return assert_calibrated


# Called, not used as a decorator: mypy --strict has no types of pytest where it is not installed.
assert_calibrated = pytest.fixture(name="assert_calibrated", scope="session")(_assert_calibrated)
