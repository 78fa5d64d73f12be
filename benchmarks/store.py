"""Cost of storing a finished job and of reading it back: ``python benchmarks/store.py``.

Jobs that only return an array, through a `Store` and through `run_jobs` alone: the difference is the cost of storing.
Then the same folder again, where no job is missing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import record

from eigenoptions.parallel import run_jobs
from reproduction.store import Store

SIZES = {10: 50} if record.QUICK else {10: 1_000, 1_000: 1_000, 100_000: 50}  # numbers in a result: jobs


def result(job: int, length: int) -> np.ndarray:
    """As many numbers as a job returns."""
    return np.full(length, float(job))


def measure(length: int, many: int) -> None:
    jobs, shared = list(range(many)), {"length": length}
    alone, plain = record.clock(lambda: run_jobs(result, jobs, shared=shared), True)
    size = f"results of {8 * length:,} bytes"
    with tempfile.TemporaryDirectory() as folder:

        def kept() -> list[np.ndarray]:
            with Store(folder) as store:
                return store.pmap(result, jobs, shared=shared)

        first, made = record.clock(kept, True)
        again, found = record.clock(kept, True)
        written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    gaps = [float(np.abs(a - b).max()) for a, b in zip(plain * 2, made + found, strict=True)]
    record.agree(f"stored and read back, {size}", max(gaps), 0)
    record.fact(f"to store a job, {size}", (first - alone) / many * 1e6, "us", "wall")
    record.fact(f"to read it back, {size}", again / many * 1e6, "us", "wall")
    record.fact(f"on disk beyond the numbers, {size}", written / many - 8 * length, "bytes per job")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        # The version of the code is computed once per process: not part of the measurement.
        store.pmap(result, [0], shared={"length": 1})
    for length, many in SIZES.items():
        measure(length, many)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
