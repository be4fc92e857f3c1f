"""Progress bars for work that takes longer than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from threading import Lock
from typing import Literal

#: How a simulation ends: with all replicates, by sequential stopping or by Ctrl-C.
Ended = Literal["complete", "early", "interrupted"]

#: Held by the one bar that may be shown.
_SHOWING = Lock()


@contextmanager
def progress(total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that reports steps; one bar shows on a terminal after two seconds."""
    if total == 1 or not sys.stderr.isatty() or not _SHOWING.acquire(blocking=False):
        yield lambda steps: None
        return
    from tqdm import tqdm

    try:
        width = get_terminal_size().columns  # also where a terminal has none
        with tqdm(total=total, unit=f" {unit}", delay=2.0, leave=False, ncols=width) as bar:
            yield lambda steps: (bar.update(steps), None)[1]
    finally:
        _SHOWING.release()
