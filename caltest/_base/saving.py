"""Atomic writes of files, and lock files that no crash leaves in the way.

Every file of the package is written by :func:`write_file`: beside its target, under a name that
nobody can guess and that must not exist, then moved into place. A full disk, a crash or Ctrl-C
leaves the old file.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

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
    """Write bytes and wait until they are on the disk."""
    file.write(data)
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise


def _keep_owner(path: Path, old: os.stat_result) -> None:
    """Give a file the owner and group of the old one, as far as permissions allow."""
    if sys.platform != "win32":
        new = path.stat()
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            with suppress(OSError):
                os.chown(path, old.st_uid, old.st_gid)


def next_name(path: Path) -> Path:
    """Return the first free name among ``S-2.json``, ``S-3.json``, … for ``S.json``."""
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
    """Open a lock file; return its descriptor and whether this call created it."""
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
    """Return whether an open file is a lock of caltest; a new one is marked as such.

    An empty file of the user is used as a lock, but is not removed. FileExistsError for other
    content.
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
