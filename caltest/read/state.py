"""A state on disk: one writer at a time, and a crash leaves the old or the new."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.saving import locked, write_file

__all__ = ["content_mark", "fingerprint", "locked", "write"]

#: Bytes of a piece of a file, and those from which on equal files are one.
_PIECE, _TELLING = 2**16, 2**9


def write(path: Path, text: str) -> None:
    """Replace a state at once, and only when the new one is on disk; call it with the lock held."""
    write_file(path, text)


def content_mark(path: Path) -> str:
    """Return a hash of the size of a file and 16 pieces of it, of a small one of its name, too."""
    size, pieces = path.stat().st_size, 16
    name = str(path) if size < _TELLING else ""
    digest = hashlib.sha256(f"{size}{name}".encode())
    with path.open("rb") as file:
        for piece in range(pieces):
            file.seek(max(0, size - _PIECE) * piece // (pieces - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def fingerprint(*columns: ArrayLike) -> str:
    """Return a hash of columns of rows."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
