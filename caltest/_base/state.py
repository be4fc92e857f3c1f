"""A state on disk: one writer at a time, and a crash leaves the old or the new."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: Bytes of a piece of a file, and those from which on equal files are one.
_PIECE, _TELLING = 2**16, 2**9


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock beside a file; wait while another process has it. It ends with the process."""
    with Path(f"{path}.lock").open("a") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # after ten seconds
                    continue
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(path: Path, text: str) -> None:
    """Replace a file at once, and only when the new one is on disk; call it with the lock held."""
    new = Path(f"{path}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def content_mark(path: Path) -> str:
    """Return a hash of the size of a file and of 16 pieces of it: known again by another name.

    Small files, which may be alike by chance, are told apart by their names, too.
    """
    size, pieces = path.stat().st_size, 16
    name = str(path) if size < _TELLING else ""
    digest = hashlib.sha256(f"{size}{name}".encode())
    with path.open("rb") as file:
        for piece in range(pieces):
            file.seek(max(0, size - _PIECE) * piece // (pieces - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def fingerprint(*columns: Any) -> str:
    """Return a hash of columns of rows."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
