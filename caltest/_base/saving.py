"""Atomic writes of files, lock files that no crash leaves in the way, and states on disk.

Every file of the package is written by :func:`write_file`: beside its target, under a name that
nobody can guess and that must not exist, then moved into place. A full disk, a crash or Ctrl-C
leaves the old file. States are sealed by a checksum (:func:`sealed`, :func:`unsealed`);
:class:`FileStamp` recognises an unchanged file by its metadata, :func:`content_mark` by a hash.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike

from caltest.errors import InvalidPredictionsError

#: Mode of a new file before the umask, and the bits of an old one that are kept.
_NEW_MODE, _MODE_BITS = 0o666, 0o777

#: Content by which a lock of caltest is told from a file of the user.
_LOCK_MARK = b"lock of caltest\n"

#: Opened as bytes, and never through a link, where the system knows these flags.
_PLAIN = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file whole, or leave the old one.

    The content is written beside the target, forced to disk and moved into place. A link is
    followed to its target and stays a link. An old file keeps its mode and, where the system
    allows it, its owner and group; other hard links to it keep the old content. Devices and pipes
    are written directly.

    Parameters
    ----------
    path : path
        Target.
    content : str or bytes
        Text is encoded as UTF-8, line feeds as they are.

    Raises
    ------
    OSError
        With the name of the target when it is a folder or read-only, when its folder takes no
        files, or when the disk is full. The old file is as it was and no temporary file remains.
    """
    target = Path(os.path.realpath(path))
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with target.open("wb") as device:  # IsADirectoryError for a folder
            device.write(data)
        return
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", str(path))
    try:
        _replace(target, data, old)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    """Write ``data`` to a temporary file beside the target, and move it into place.

    ``old`` is the status of the file that is replaced, whose mode and owner the new one takes; None
    if there is none. The temporary file is removed on failure.
    """
    beside = target.with_name(f".caltest-{secrets.token_hex(12)}.tmp")
    mode = _NEW_MODE if old is None else stat.S_IMODE(old.st_mode) & _MODE_BITS
    # Private until the old mode is set: the umask must not widen what was narrow.
    start = _NEW_MODE if old is None else 0o600
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, start)
    try:
        with open(descriptor, "wb") as file:
            _fill(file, data)
            if old is not None:
                _keep_owner(beside, old)
                os.chmod(beside, mode)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()  # made by O_EXCL above, so it is ours
        raise


def _fill(file: BinaryIO, data: bytes) -> None:
    """Write bytes to an open binary file and wait until they are on the disk.

    Where the file system cannot wait, the bytes are written all the same.
    """
    file.write(data)
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise


def _keep_owner(path: Path, old: os.stat_result) -> None:
    """Give the file ``path`` the owner and group of an old file, as far as permissions allow.

    ``old`` is the status of that file, from ``os.stat``. On Windows nothing is done.
    """
    if sys.platform != "win32":
        new = path.stat()
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            with suppress(OSError):
                os.chown(path, old.st_uid, old.st_gid)


def next_name(path: Path) -> Path:
    """Return the first free name among ``S-2.json``, ``S-3.json``, … for a path ``S.json``.

    A name is free if no file of that name exists.
    """
    number = 2
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other


# ------------------------------------------------------------------------------
# Locks.


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; wait while another process has it. It ends with the process.

    The lock of ``S.json`` is ``.S.json.caltest-lock`` in the folder of the file that ``S.json``
    leads to, so that two links to one file have one lock. It is removed at the end if its content
    says that caltest made it.

    A context manager, which yields nothing.

    Raises
    ------
    FileExistsError
        When a file of that name is not a lock of caltest; it is left alone.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.caltest-lock")
    while True:
        descriptor, created = _opened(lock)
        try:
            _wait_for(descriptor)
            try:
                same = os.path.samestat(os.fstat(descriptor), lock.stat(follow_symlinks=False))
            except FileNotFoundError:
                same = False
            if not same:  # whoever held it has removed it
                continue
            ours = _is_lock(descriptor, lock, created)
            try:
                yield
            finally:
                if ours:
                    with suppress(OSError):  # Windows removes no open file
                        lock.unlink()
            return
        finally:
            os.close(descriptor)


def _opened(lock: Path) -> tuple[int, bool]:
    """Open a lock file for reading and writing; return (descriptor, created).

    ``created`` says that this call made the file. OSError, with advice, if something else is in its
    place.
    """
    flags = os.O_RDWR | _PLAIN
    try:
        return os.open(lock, flags | os.O_CREAT | os.O_EXCL, _NEW_MODE), True
    except FileExistsError:
        try:
            return os.open(lock, flags), False
        except FileNotFoundError:  # removed in between
            return _opened(lock)
        except OSError as error:
            raise type(error)(error.errno, "no lock of caltest, move it away", str(lock)) from None


def _is_lock(descriptor: int, lock: Path, created: bool) -> bool:
    """Return whether an open file is a lock of caltest.

    ``descriptor`` belongs to the file ``lock``; a file that this call has ``created`` is marked as
    a lock. An empty file of the user is used as a lock, but is not removed. FileExistsError for
    other content.
    """
    content = os.read(descriptor, 64)
    if content == b"" and created:
        os.write(descriptor, _LOCK_MARK)
        return True
    if content not in (b"", _LOCK_MARK):
        raise FileExistsError(errno.EEXIST, "no lock of caltest, move it away", str(lock))
    return content == _LOCK_MARK


def _wait_for(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError:  # after ten seconds
                continue
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


# ------------------------------------------------------------------------------
# A state on disk: one writer at a time, whole, sealed by a checksum; files known by content.


#: Bytes from which on files of equal content are copies; smaller ones may be equal by chance.
TELLING_BYTES = 2**9


#: Nanoseconds after a change in which a second change may leave the time of the first.
_SETTLED = 2_000_000_000


def parse_json(text: str | bytes, what: str) -> Any:
    """Return the content of JSON text; InvalidPredictionsError, in one sentence, if it is no JSON.

    ``what`` is the subject of that sentence, such as the name of the file.
    """
    try:
        return json.loads(text)
    except RecursionError:
        why = "its brackets are nested too deep"
    except ValueError as error:  # of JSON, of Unicode and of numbers of too many digits
        why = str(error)
    raise InvalidPredictionsError(f"{what} is no JSON: {why}")


def sealed(content: Mapping[str, object]) -> str:
    """Return ``content`` as JSON text whose last field, "checksum", is a hash of the other fields.

    ``content`` maps names of fields to values that JSON can hold, and may not be empty.
    """
    text = json.dumps(content)
    return f'{text[:-1]}, "checksum": "{_checksum(text)}"}}'


def unsealed(content: object, what: str) -> dict[str, Any]:
    """Return the fields of an object that :func:`sealed` wrote, by name, without its checksum.

    ``content`` is the parsed JSON. InvalidPredictionsError when it is no mapping, and when the
    checksum does not match the other fields; ``what``, the name of the file, begins the message.
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

    ``size`` is in bytes. ``mtime_ns``, in ns since 1970, is None if the file was changed within two
    seconds before it was looked at: a second change could have the same time, so the content has to
    be compared. ``inode`` and ``device`` are the numbers that the operating system gives.
    """

    size: int
    mtime_ns: int | None
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the stamp of a file: its size, time of change, inode and device.

        The time is None if it lies within the last two seconds. FileNotFoundError if there is no
        file.
        """
        found = os.stat(path)
        recent = time.time_ns() - found.st_mtime_ns < _SETTLED
        when = None if recent else found.st_mtime_ns
        return cls(found.st_size, when, found.st_ino, found.st_dev)

    def as_dict(self) -> dict[str, int | None]:
        """Return the stamp as a dictionary for JSON, the values by the names of the fields."""
        return asdict(self)

    def trusts(self, other: Self) -> bool:
        """Return whether a file is certainly unchanged since this stamp was taken.

        ``other`` is its present stamp. The stamps have to be equal, and the time of change known:
        it is None where the file had just been changed.
        """
        return self == other and self.mtime_ns is not None


def content_mark(path: Path) -> str:
    """Return the BLAKE2 hash, as text, of a whole file; O(size).

    The hash of a small file covers its path as well.
    """
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
        if file.tell() < TELLING_BYTES:
            digest.update(f"\0{path}".encode(errors="backslashreplace"))
    return digest.hexdigest()


def fingerprint(*columns: ArrayLike) -> str:
    """Return a SHA-256 hash, hexadecimal text, of the values of several arrays in order.

    Their bytes are hashed: types count, shapes do not.
    """
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
