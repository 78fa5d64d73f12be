"""Journals: files that grow by one sealed record at a time, and give back all whole records.

A record is written at the end. A writer that was killed or ran out of space leaves a torn end at worst, which the next
one drops; damage elsewhere costs the records it touches and no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

FORMAT = 1
FIRST = b"eigenoptions journal "  # begins a journal in all formats; then the format
RECORD = b"\nrecord "
LINE = re.compile(RECORD + rb"(\d+) (\d+) ([0-9a-f]{32})\n")
CHUNK = 1 << 20

Place = tuple[int, int, int, int]  # where a record, its JSON and its bytes begin, and where it ends


def check_format(path: Path) -> None:
    """Raise ValueError if a journal was written in another format."""
    with open(path, "rb") as file:
        found = re.match(FIRST + rb"(\d+)\n", file.read(80))
    if found and int(found[1]) != FORMAT:
        raise ValueError(
            f"{path} has format {int(found[1])}, this version reads {FORMAT}: start over (--fresh), "
            "give another folder, or install the version that wrote it"
        )


class Journal:
    """A file of records, each sealed by itself and added at the end; what is torn or damaged is left out.

    A record is a piece of JSON and the bytes that belong to it. Only one process may write (see `keeping`).

    Attributes
    ----------
    path
        Of the file, which is made by the first record.
    places
        Where the whole records lie, in order.
    lost
        Bytes found that belong to no whole record.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "a") as journal:
    ...     journal.read(journal.append({"option": "e2+"}, [b"123"]))
    ({'option': 'e2+'}, b'123')
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.places: list[Place] = []
        self.lost = 0
        self._file: FileIO | None = None
        self._first = FIRST + b"%d" % FORMAT
        if os.path.exists(self.path):
            check_format(self.path)
            self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115
            size = os.fstat(self._file.fileno()).st_size
            self.places = list(_whole(self._file, size))
            good = sum(end - begin for begin, _, _, end in self.places)
            self.lost = max(0, size - good - len(self._first))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; what was added is on the disk then."""
        if self._file is not None:
            if self._file.writable():
                with suppress(OSError):
                    os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def head(self, place: Place) -> Any:
        """JSON of a record."""
        _, start, middle, _ = place
        assert self._file is not None
        self._file.seek(start)
        return json.loads(b"".join(_pieces(self._file, middle - start)))

    def read(self, place: Place) -> tuple[Any, bytes]:
        """JSON and bytes of a record."""
        _, start, middle, end = place
        assert self._file is not None
        self._file.seek(start)
        raw = b"".join(_pieces(self._file, end - start))
        return json.loads(raw[: middle - start]), raw[middle - start :]

    def append(self, head: Any, parts: Sequence[bytes] = ()) -> Place:
        """Add a record, whole or not at all, and say where it lies.

        Raises OSError, naming the path, where it cannot be written; then the file is as it was.
        """
        text = json.dumps(head, allow_nan=False).encode()
        line = RECORD + b"%d %d %s\n" % (len(text), sum(map(len, parts)), _sum([text, *parts]))
        try:
            file = self._writer()
            begin = self.places[-1][3] if self.places else len(self._first)
            try:
                file.seek(begin)
                for part in (line, text, *parts):
                    _write(file, part)
            except BaseException:
                with suppress(OSError):
                    file.truncate(begin)
                raise
        except OSError as error:
            raise type(error)(f"cannot write {self.path}: {error.strerror or error}") from None
        start = begin + len(line)
        self.places.append((begin, start, start + len(text), file.tell()))
        return self.places[-1]

    def shorten(self, places: Sequence[Place]) -> None:
        """Write the file again with just these records, whole or not at all."""
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        assert self._file is not None
        try:
            moved: list[Place] = []
            with open(temporary, "wb", buffering=0) as file:
                _write(file, self._first)
                for begin, start, middle, end in places:
                    by = file.tell() - begin
                    self._file.seek(begin)
                    for piece in _pieces(self._file, end - begin):
                        _write(file, piece)
                    moved.append((begin + by, start + by, middle + by, end + by))
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            raise type(error)(f"cannot write {self.path}: {error.strerror or error}") from None
        finally:
            with suppress(OSError):
                temporary.unlink()
        self._file.close()
        self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115
        self.places, self.lost = moved, 0

    def _writer(self) -> FileIO:
        """Return the file ready for writing, without a torn end."""
        if self._file is None or not self._file.writable():
            file = open(self.path, "r+b" if self._file else "w+b", buffering=0)  # noqa: SIM115
            if self._file is not None:
                self._file.close()
            self._file = file
            file.truncate(self.places[-1][3] if self.places else 0)
            if not self.places:
                _write(file, self._first)
        return self._file


def _whole(file: FileIO, size: int) -> Iterator[Place]:
    """Records whose seal fits; after damage the search goes on at the next thing that looks like a record."""
    begin = _find(file, RECORD, 0)
    while 0 <= begin < size:
        file.seek(begin)
        found = LINE.match(file.read(96))
        if found:
            start = begin + found.end()
            middle = start + int(found[1])
            end = middle + int(found[2])
            file.seek(start)
            if end <= size and _sum(_pieces(file, end - start)) == found[3]:
                yield begin, start, middle, end
                begin = end
                continue
        begin = _find(file, RECORD, begin + 1)


def _find(file: FileIO, what: bytes, at: int) -> int:
    """Where these bytes occur next, or -1."""
    while True:
        file.seek(at)
        piece = file.read(CHUNK)
        found = piece.find(what)
        if found >= 0:
            return at + found
        if len(piece) < len(what):
            return -1
        at += len(piece) - len(what) + 1


def _pieces(file: FileIO, size: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(size, CHUNK))):
        size -= len(piece)
        yield piece


def _write(file: FileIO, data: bytes) -> None:
    """Write all of it: a raw file may take less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _sum(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest().encode()
