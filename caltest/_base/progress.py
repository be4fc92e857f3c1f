"""Progress bars for work that takes longer than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that reports steps done; a bar appears on stderr after two seconds."""
    from tqdm import tqdm

    often = 0.1 if sys.stderr.isatty() else 2.0  # a log file wants few lines
    with tqdm(total=total, unit=f" {unit}", delay=2.0, leave=False, mininterval=often) as bar:
        yield lambda steps: (bar.update(steps), None)[1]
