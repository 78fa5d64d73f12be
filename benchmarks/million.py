"""A million states and a hundred million transitions, end to end: time and memory of every step.

Run ``python benchmarks/million.py`` with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1, as `make bench` does. Every case
runs in a process of its own, so that its peak memory can be read; above 6 GB the aim is missed and the exit code is 1.
The transitions are drawn uniformly over states and actions, which is the hardest order for memory, into a temporary
folder of 0.8 GB. The stream over them must be exactly twice the Laplacian: every transition, each once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import record

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions.discovery.samples import gather
from eigenoptions.mdp import maps

OPTIONS, MOST = 8 if record.QUICK else 64, 6.0  # options of a map, and GB that everything may take
MAPS = {
    "rooms": lambda side: maps.rooms_map(side, side),
    "perfect maze": lambda side: maps.perfect_map(side, side),
}
SIDES = {"rooms": 6, "perfect maze": 40} if record.QUICK else {"rooms": 100, "perfect maze": 707}
SHARDS, ROWS = (4, 50_000) if record.QUICK else (10, 10_000_000)


class Steps:
    """Say what each step took, beside its peak memory so far."""

    def __init__(self, case: str) -> None:
        self.case, self.total = case, 0.0
        self.began = time.perf_counter(), time.process_time()

    def done(self, step: str) -> float:
        """End a step, and begin the next; its CPU seconds."""
        wall, cpu = time.perf_counter() - self.began[0], time.process_time() - self.began[1]
        self.total += cpu
        record.fact(f"{self.case}, {step}", cpu, "s", f"wall {wall:.1f} s, peak {record.peak():.2f} GB")
        self.began = time.perf_counter(), time.process_time()
        return cpu


def discover(kind: str) -> None:
    """Map, graph, spectrum, options, save, load, pictures."""
    eo.discover(eo.maze(maps.rooms_map(3, 3)), 4)  # compiled before the clock starts, both ways to a spectrum
    eo.discover(eo.maze(maps.perfect_map(20, 20)), 4)
    text = MAPS[kind](SIDES[kind])
    steps = Steps(kind)
    mdp = eo.maze(text)
    del text
    steps.done(f"{mdp.n_states:,} states, read the map")
    W = eo.graph(mdp)
    graph = steps.done("graph")
    sp = eo.spectrum(W, OPTIONS // 2 + 1)
    del W
    spectrum = steps.done(f"spectrum k={OPTIONS // 2 + 1}")
    options = eo.solve(mdp, eo.eigenpurposes(sp))
    solving = steps.done(f"{len(options)} options")
    record.fact(
        f"{kind}, graph, spectrum and options over the spectrum", 1 + (graph + solving) / spectrum, "x"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "options.safetensors"
        options.save(file)
        steps.done(f"save {file.stat().st_size / 1e9:.2f} GB")
        again = eo.load_options(file, mdp)
        same = np.array_equal(again.policy, options.policy) and np.array_equal(again.value, options.value)
        steps.done("load and compare")
        record.agree(f"{kind}, saved and loaded options", float(not same), 0.0)
        del again
        where = record.OUT if record.OUT.is_dir() else Path(folder)
        plots.save_figure(plots.plot_eigenvectors(mdp, sp), where / f"million-{kind.split()[0]}-pvfs.png")
        steps.done("picture of 8 eigenvectors")
        plots.save_figure(plots.plot_options(options), where / f"million-{kind.split()[0]}-options.png")
        steps.done(f"picture of {len(options)} options")
    record.fact(f"{kind}, all steps", steps.total, "s")
    record.aim(f"peak memory, {kind}, {mdp.n_states:,} states", record.peak(), most=MOST, unit="GB")


def transitions() -> None:
    """A stream of transitions from files, by this process and by two workers; twice the Laplacian in the end."""
    mdp = eo.maze(MAPS["rooms"](SIDES["rooms"]))
    assert mdp.successors is not None
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps("transitions")
        for i in range(SHARDS):
            rng = np.random.default_rng(i)
            pairs = np.empty((ROWS, 2), dtype=np.int32)
            pairs[:, 0] = rng.integers(mdp.n_states, size=ROWS, dtype=np.int32)
            pairs[:, 1] = mdp.successors[pairs[:, 0], rng.integers(4, size=ROWS, dtype=np.int8)]
            np.save(Path(folder) / f"shard-{i:03d}.npy", pairs)
            del pairs
        steps.done(f"{SHARDS * ROWS:,} of {mdp.n_states:,} states, drawn and written")
        began = time.perf_counter()
        gram = gather(folder, mdp.n_states)
        alone = time.perf_counter() - began
        cpu = steps.done("gathered by this process")
        record.fact("transitions, rate of one process", SHARDS * ROWS / cpu, "rows/s", f"CPU; {gram!r}")
        record.fact("transitions, the stream holds", gram.nbytes / 1e9, "GB", f"peak {record.peak():.2f} GB")
        began = time.perf_counter()
        with eo.parallel.using("processes", workers=2):
            both = gather(folder, mdp.n_states)
        wall = time.perf_counter() - began
        here, there = record.peak(), workers_peak()
        steps.done("gathered by two workers, what is left to this process")
        note = (
            f"wall; one process took {alone:.1f} s; workers' peaks {', '.join(f'{x:.2f}' for x in there)} GB"
        )
        record.fact("transitions, two workers", wall, "s", note)
        same = np.array_equal(both._rows.words, gram._rows.words)
        record.agree("transitions, two workers and one process, to the last bit", float(not same), 0.0)
        del both
        G, L = gram.matrix, eo.laplacian(eo.graph(mdp), "combinatorial")
        steps.done("Gram matrix and Laplacian")
        record.agree("transitions, the Gram matrix and twice the Laplacian", float(abs(G - 2 * L).max()), 0.0)
    record.aim("peak memory, transitions, all processes", here + sum(there), most=MOST, unit="GB")


def workers_peak() -> list[float]:
    """The most memory that each child of this process has held so far, in GB."""
    children = Path("/proc/self/task")
    found = []
    for task in children.iterdir() if children.is_dir() else ():
        for child in (task / "children").read_text().split():
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            found += [int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM")]
    return found


def main() -> int:
    cases = [*MAPS, "transitions"]
    if "--case" in sys.argv:
        case = sys.argv[sys.argv.index("--case") + 1]
        transitions() if case == "transitions" else discover(case)
        return record.verdict()
    quick = ["--quick"] if record.QUICK else []
    codes = [subprocess.run([sys.executable, __file__, "--case", case, *quick]).returncode for case in cases]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
