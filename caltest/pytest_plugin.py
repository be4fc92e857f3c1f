"""Fixtures of pytest, which finds them by the entry point ``pytest11``.

Nothing but pytest is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def assert_calibrated() -> Callable[..., object]:
    """Fail unless predictions are calibrated; see :func:`caltest.testing.assert_calibrated`."""
    from caltest.testing import assert_calibrated

    return assert_calibrated
