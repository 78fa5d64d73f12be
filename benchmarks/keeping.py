"""What it costs to keep a finished job, and to find it again: ``python benchmarks/keeping.py``.

Jobs that do nothing and return an array, through a `Shelf` and through `pmap` alone: the difference is what keeping
takes. Then the same folder again, where nothing is left to do.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import record

from eigenoptions.experiments.keeping import Shelf
from eigenoptions.parallel import pmap

SIZES = {10: 50} if record.QUICK else {10: 1_000, 1_000: 1_000, 100_000: 50}  # numbers in a result: jobs


def result(job: int, length: int) -> np.ndarray:
    """As many numbers as a job returns."""
    return np.full(length, float(job))


def measure(length: int, many: int) -> None:
    jobs, shared = list(range(many)), {"length": length}
    alone, plain = record.clock(lambda: pmap(result, jobs, shared=shared), True)
    size = f"results of {8 * length:,} bytes"
    with tempfile.TemporaryDirectory() as folder:

        def kept() -> list[np.ndarray]:
            with Shelf(folder) as shelf:
                return shelf.pmap(result, jobs, engine="serial", shared=shared)

        first, made = record.clock(kept, True)
        again, found = record.clock(kept, True)
        written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    gaps = [float(np.abs(a - b).max()) for a, b in zip(plain * 2, made + found, strict=True)]
    record.agree(f"kept and found again, {size}", max(gaps), 0)
    record.fact(f"to keep a job, {size}", (first - alone) / many * 1e6, "us", "wall")
    record.fact(f"to find it again, {size}", again / many * 1e6, "us", "wall")
    record.fact(f"on disk beyond the numbers, {size}", written / many - 8 * length, "bytes a job")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, Shelf(folder) as shelf:
        shelf.pmap(
            result, [0], engine="serial", shared={"length": 1}
        )  # the code's hash is made once a process
    for length, many in SIZES.items():
        measure(length, many)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
