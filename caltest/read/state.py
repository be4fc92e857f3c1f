"""A state on disk: one writer at a time, whole, sealed by a checksum; files known by content.

:func:`sealed` and :func:`unsealed` add and check the checksum; :class:`FileStamp` recognises an
unchanged file by its metadata, :func:`content_mark` by a hash of its content.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.saving import locked, next_name, write_file
from caltest.errors import InvalidPredictionsError

__all__ = [
    "FileStamp", "content_mark", "fingerprint", "locked", "next_name", "parse_json", "sealed",
    "unsealed", "write_file",
]  # fmt: skip

#: Bytes from which on files of equal content are copies; smaller ones may be equal by chance.
TELLING_BYTES = 2**9


#: Nanoseconds after a change in which a second change may leave the time of the first.
_SETTLED = 2_000_000_000


def parse_json(text: str | bytes, what: str) -> Any:
    """Return parsed JSON; InvalidPredictionsError, in one sentence, for text that is no JSON.

    ``what`` begins the sentence.
    """
    try:
        return json.loads(text)
    except RecursionError:
        why = "its brackets are nested too deep"
    except ValueError as error:  # of JSON, of Unicode and of numbers of too many digits
        why = str(error)
    raise InvalidPredictionsError(f"{what} is no JSON: {why}")


def sealed(content: Mapping[str, object]) -> str:
    """Return content as JSON whose last field is a checksum of the others."""
    text = json.dumps(content)
    return f'{text[:-1]}, "checksum": "{_checksum(text)}"}}'


def unsealed(content: object, what: str) -> dict[str, Any]:
    """Return parsed JSON of :func:`sealed` without its checksum.

    InvalidPredictionsError when it is no mapping, and when the checksum is another one.
    """
    if not isinstance(content, dict):
        raise InvalidPredictionsError(f"{what}: it is a {type(content).__name__}, not a mapping")
    content = dict(content)
    mark = content.pop("checksum", None)
    if mark != _checksum(json.dumps(content)):
        raise InvalidPredictionsError(
            f"{what} is damaged: its checksum does not match its content; restore the file, or "
            "count anew"
        )
    return content


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class FileStamp:
    """Size, time of change, inode and device of a file, by which unchanged files are recognised.

    ``mtime_ns`` is None if the file was changed within two seconds before it was looked at: a
    second change could have the same time, so the content has to be compared.
    """

    size: int
    mtime_ns: int | None
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the stamp of a file: size, time of change, inode and device."""
        found = os.stat(path)
        recent = time.time_ns() - found.st_mtime_ns < _SETTLED
        when = None if recent else found.st_mtime_ns
        return cls(found.st_size, when, found.st_ino, found.st_dev)

    def as_dict(self) -> dict[str, int | None]:
        """Return the stamp as a dictionary for JSON."""
        return asdict(self)

    def trusts(self, other: Self) -> bool:
        """Return whether the file is certainly unchanged: equal stamps with a settled time."""
        return self == other and self.mtime_ns is not None


def content_mark(path: Path) -> str:
    """Return the BLAKE2 hash of a whole file, of a small one together with its name; O(size)."""
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
        if file.tell() < TELLING_BYTES:
            digest.update(f"\0{path}".encode(errors="backslashreplace"))
    return digest.hexdigest()


def fingerprint(*columns: ArrayLike) -> str:
    """Return a hash of the content of several columns."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
