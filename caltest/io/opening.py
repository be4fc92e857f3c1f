"""Opening files: plain, compressed, or the standard input, to bytes that can be read from anywhere."""

from __future__ import annotations

import gzip
import sys
import zipfile
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from caltest.errors import InvalidPredictionsError

#: What a file is, by its ending.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".npz": "npz",
    ".npy": "npy",
    ".eval": "inspect",
}
#: How the bytes begin where there is no ending to go by.
_BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": ".zip",
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"{": "json",
    b"[": "json",
}


@dataclass(frozen=True)
class Opened:
    """The bytes of a file, unpacked, what they are called, and what they are."""

    name: str
    format: str
    file: BinaryIO


def opened(path: str | PathLike[str], format: str | None) -> Opened:
    """Open a file, or the standard input for ``-``; what it is follows from its ending."""
    if not isinstance(path, (str, PathLike)):
        raise TypeError(
            f"path is a {type(path).__name__}, not the name of a file: values in memory are for "
            "Predictions.of(probs, labels)"
        )
    path = Path(path)
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        name, ending, file, size = "standard input", _beginning(data), BytesIO(data), len(data)
    else:
        if path.is_dir():
            raise InvalidPredictionsError(f"{path} is a folder, not a file of predictions")
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        name, ending, size = path.name, path.suffix.lower(), path.stat().st_size
        file = path.open("rb")
    if not size:
        file.close()
        raise InvalidPredictionsError(f"{name} is empty")
    if ending in (".gz", ".zst", ".zip") and format not in ("npz", "excel", "inspect"):
        with file:
            inner, data = _unpacked(name, ending, file)
        file = BytesIO(data)
        ending = Path(inner).suffix.lower() or _beginning(data)
    known = format or ENDINGS.get(ending, ending if ending in ENDINGS.values() else None)
    if known is None:
        file.close()
        raise InvalidPredictionsError(
            f"{name}: files of type {ending or '(no ending)'} cannot be read; known are "
            f"{', '.join(ENDINGS)}, also in .gz, .zst and .zip; if it is one of these under another "
            "name, say which with format= (--format)"
        )
    return Opened(name, known, file)


def _beginning(data: bytes) -> str:
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((kind for magic, kind in _BEGINNINGS.items() if start.startswith(magic)), "csv")


def _unpacked(name: str, ending: str, file: BinaryIO) -> tuple[str, bytes]:
    inner = name[: -len(ending)] if name.lower().endswith(ending) else ""
    try:
        if ending == ".gz":
            return inner, gzip.decompress(file.read())
        if ending == ".zst":
            return inner, unzst(file.read())
        with zipfile.ZipFile(file) as packed:
            members = [m for m in packed.namelist() if not m.endswith("/") and "__MACOSX" not in m]
            if len(members) == 1:
                return members[0], packed.read(members[0])
    except ImportError:
        raise
    except Exception:  # whatever a damaged file makes of the decompressors
        raise InvalidPredictionsError(f"{name}: this is not a readable {ending} file") from None
    raise InvalidPredictionsError(
        f"{name} holds {len(members)} files ({', '.join(members)}): unpack it and name one of them"
    )


def unzst(data: bytes) -> bytes:
    """Decompress Zstandard."""
    pyarrow = imported("pyarrow", "parquet", "Zstandard files")
    return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read())


def imported(module: str, extra: str, what: str) -> Any:
    """Import an optional library, or name the extra that installs it."""
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"reading {what} needs {package}: pip install 'caltest[{extra}]'"
        ) from None
