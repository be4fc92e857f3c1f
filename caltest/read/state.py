"""A state on disk: one writer at a time, and a crash leaves the old or the new."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike

#: Bytes of a piece of a file, and those from which on equal files are one.
_PIECE, _TELLING = 2**16, 2**9


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock beside a file; wait while another process has it. It ends with the process."""
    lock = Path(f"{path}.lock")
    while True:
        with lock.open("a") as file:
            _wait_for(file)
            try:
                same = os.path.samestat(os.fstat(file.fileno()), lock.stat())
            except FileNotFoundError:
                same = False
            if not same:  # whoever held it has removed it
                continue
            try:
                yield
            finally:
                with suppress(PermissionError):  # Windows removes no open file
                    lock.unlink()
            return


def _wait_for(file: TextIO) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            except OSError:  # after ten seconds
                continue
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)


def write(path: Path, text: str) -> None:
    """Replace a file at once, and only when the new one is on disk; call it with the lock held."""
    new = Path(f"{path}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


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
