"""What several workers are worth, and what they cost: ``python benchmarks/parallel.py``.

Learning experiments of a second or longer, one after the other, on worker processes (from a cold start, and once they
are up), on a Ray cluster of this machine. Then the costs: to start, of a job
that does nothing, of an array that all jobs share. These are wall times, so the aim holds only on an idle machine, and
a busy one is reported as busy; the CPU seconds of the busiest worker tell how fast an idle one would be.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import record
from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor

import eigenoptions as eo
from eigenoptions.parallel import run_jobs, using

AIM, IDLE = 1.7, 0.85
JOBS, SECONDS = (4, 0.05) if record.QUICK else (20, 1.5)
TINY = {"processes": 200, "ray": 50} if record.QUICK else {"processes": 5_000, "ray": 2_000}
SHARED = 2**20 if record.QUICK else 500 * 2**20  # bytes


def learn(job: dict[str, int]) -> tuple[bytes, int, float]:
    """A block of runs of the paper's learning experiment, who did it, and the CPU seconds that it has lived so far."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, n_options=8)
    found = eo.q_learning(mdp, options, runs=job["runs"], episodes=500, rng=job["seed"]).returns
    return found.tobytes(), os.getpid(), time.process_time()


def run_on(engine: str, *jobs: Any, **settings: Any) -> list[Any]:
    with using(engine):
        return run_jobs(*jobs, **settings)


def nothing(job: int) -> None:
    return None


def touch(job: int, table: np.ndarray) -> float:
    return float(table[job])


def idle(seconds: float = 1.0) -> float:
    """The share of this machine's cores that are idle; 1 where the system does not report it."""

    def times() -> np.ndarray:
        with open("/proc/stat", encoding="ascii") as file:
            return np.array(file.readline().split()[1:9], dtype=float)

    try:
        before = times()
        time.sleep(seconds)
        spent = times() - before
    except OSError:
        return 1.0
    return float((spent[3] + spent[4]) / spent.sum())


def experiments() -> list[dict[str, int]]:
    """Jobs of about as many seconds as we ask for, on this machine now."""
    learn({"runs": 1, "seed": 0})  # compiled, or read from the cache
    spent, _ = record.clock(lambda: learn({"runs": 200, "seed": 0}))
    runs = max(1, round(200 * SECONDS / spent))
    record.say(f"  {JOBS} jobs of {runs} runs, 500 episodes each")
    return [{"runs": runs, "seed": seed} for seed in range(JOBS)]


def compare(
    jobs: list[dict[str, int]],
    engine: str,
    name: str,
    serial: tuple[float, float],
    right: list[bytes],
    warm: bool = True,
) -> float:
    """Wall time against one after the other, and what it would be if nobody else used this machine."""
    lives = (
        {pid: life for _, pid, life in run_on(engine, learn, [{"runs": 1, "seed": 0}] * 8)} if warm else {}
    )
    spent, found = record.clock(lambda: run_on(engine, learn, jobs), wall=True)
    record.agree(f"{name} and serial, byte for byte", float([x for x, _, _ in found] != right), 0)
    ratio = record.row(f"{JOBS} learning experiments on {name}", spent, serial[0], "serial", note="wall")
    latest = {pid: life for _, pid, life in sorted(found, key=lambda one: one[2])}
    busiest = max(life - lives.get(pid, 0.0) for pid, life in latest.items())
    record.row(f"the busiest worker of {name}", busiest, serial[1], "serial", note="CPU")
    return ratio


def costs(engine: str) -> None:
    many = TINY[engine]
    spent, _ = record.clock(lambda: run_on(engine, nothing, range(many)), wall=True)
    record.fact(f"a job that does nothing, {engine}", 1e3 * spent / many, "ms", f"of {many:,}")
    table = np.ones(SHARED // 8)
    run_on(engine, touch, range(2), shared={"table": table})
    few, _ = record.clock(lambda: run_on(engine, touch, range(2), shared={"table": table}), wall=True)
    more, _ = record.clock(lambda: run_on(engine, touch, range(42), shared={"table": table}), wall=True)
    size = f"{SHARED / 2**20:.0f} MB"
    record.fact(f"{size} shared by 2 jobs, {engine}", few, "s")
    record.fact(
        f"each of 40 more jobs that share it, {engine}",
        1e3 * max(more - few, 0.0) / 40,
        "ms",
        "it travels once",
    )


def start(engine: str) -> None:
    spent, _ = record.clock(lambda: run_on(engine, nothing, range(2)), wall=True)
    record.fact(f"to start, {engine}", spent, "s")
    if engine == "processes":
        get_reusable_executor().shutdown(wait=True)


def main() -> int:
    cores = cpu_count()
    before = idle()
    jobs = experiments()
    began = time.process_time()
    wall, found = record.clock(lambda: run_jobs(learn, jobs), wall=True)
    serial, right = (wall, time.process_time() - began), [x for x, _, _ in found]
    start("processes")
    compare(jobs, "processes", f"{cores} processes, from a cold start", serial, right, warm=False)
    ratio = compare(jobs, "processes", f"{cores} processes", serial, right)
    after = idle()
    if cores < 2 or min(before, after) < IDLE:
        why = (
            f"{cores} cores"
            if cores < 2
            else f"the machine is busy: {1 - min(before, after):.0%} of it is in use"
        )
        record.skip(f"processes against serial (measured {ratio:.2f}x, aim {AIM}x on two idle cores)", why)
    elif not record.QUICK:
        record.aim("processes against serial, two cores", ratio, least=AIM)
    costs("processes")
    try:
        start("ray")
    except ValueError as error:
        record.skip("Ray", str(error))
        return record.verdict()
    compare(jobs, "ray", f"one Ray node of {cores} CPUs", serial, right)
    costs("ray")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
