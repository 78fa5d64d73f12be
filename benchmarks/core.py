"""The core against an expert's program: options of maps of every size, diffusion times, learning, the first call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numba
import numpy as np

import eigenoptions as eo
from benchmarks import expert
from benchmarks.timing import Row, compare, measure


def compare_discovery(n_options: int = 64) -> Iterator[Row]:
    """`discover` from the table to the options, against SciPy and NumPy."""
    for name in ("four-rooms", "rooms:3x3", "rooms:10x10", "rooms:31x31"):
        mdp = eo.maze(name)
        assert mdp.successors is not None
        options = eo.discover(mdp, n_options)
        E, V, _ = expert.discover_options(mdp.successors, n_options)
        # Both signs and the basis of repeated eigenvalues are free: compare what a potential is worth.
        ours = eo.solve(
            mdp,
            [eo.Purpose(e, str(i)) for i, e in enumerate(np.ascontiguousarray(E.T))],
        ).value.T
        assert np.abs(ours - V).max() < 1e-7 * np.abs(E).max()
        large = mdp.n_states > 5000
        yield compare(
            f"discover, {len(options)} options, {mdp.n_states:,} states",
            lambda mdp=mdp: eo.discover(mdp, n_options),  # type: ignore[misc]
            lambda mdp=mdp: expert.discover_options(mdp.successors, n_options),  # type: ignore[misc]
            "SciPy eigsh and NumPy value iteration",
            rounds=2 if large else 5,
        )


def compare_diffusion() -> Iterator[Row]:
    """65 diffusion times of four rooms, against a compiled LU per goal and count."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 64)
    assert mdp.successors is not None
    chosen = mdp.successors[np.arange(mdp.n_states), np.maximum(options.policy, 0)]
    option_next = np.where(options.policy >= 0, chosen, -1)
    solve_naive = numba.njit(expert.compute_diffusion_time)

    def compute_naive_curve() -> list[float]:
        return [
            solve_naive(mdp.successors, option_next[:m])
            for m in range(len(options) + 1)
        ]

    np.testing.assert_allclose(
        eo.diffusion_curve(mdp, options), compute_naive_curve(), rtol=1e-5
    )
    yield compare(
        "65 diffusion times, four rooms",
        lambda: eo.diffusion_curve(mdp, options),
        compute_naive_curve,
        "compiled LU per goal and count",
        rounds=3,
    )
    rooms = eo.maze("rooms:3x3")
    options = eo.discover(rooms, 16)
    yield Row(
        "diffusion time, 912 states, 16 options",
        measure(lambda: eo.diffusion_time(rooms, options)),
    )
    yield Row(
        "best option chance, 912 states, 16 options",
        measure(lambda: eo.best_option_chance(rooms, options)),
    )


def compare_learning() -> Iterator[Row]:
    """100 episodes of Q-learning with 8 options, against a loop of Python."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 8)
    eo.q_learning(mdp, options, runs=1, episodes=2)
    yield compare(
        "q_learning, 10 runs of 100 episodes, four rooms",
        lambda: eo.q_learning(mdp, options, runs=10, episodes=100),
        lambda: [
            expert.learn_q(
                mdp.successors,
                options.policy,
                mdp.start,
                mdp.goal,
                100,
                100,
                np.random.default_rng(run),
            )
            for run in range(10)
        ],
        "a loop of Python over NumPy arrays",
        rounds=2,
        repeat=10,
    )


def time_first_call() -> Iterator[Row]:
    """Wall time of a first call in a fresh process with an empty compile cache, imports included."""
    programs = {
        "first discover of four rooms, 8 options": "eo.discover(eo.maze('four-rooms'), 8)",
        "the same and a diffusion time": "m = eo.maze('four-rooms'); eo.diffusion_time(m, eo.discover(m, 8))",
        "first q_learning, 10 runs of 100 episodes": "eo.q_learning(eo.maze('four-rooms'), runs=10, episodes=100)",
    }
    for name, code in programs.items():
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            command = [sys.executable, "-c", f"import eigenoptions as eo; {code}"]
            subprocess.run(
                command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache}
            )
            yield Row(name, time.perf_counter() - start)


def time_a_million_states(n_options: int = 64) -> Iterator[Row]:
    """Rooms of a million states, in a process of its own so that its peak memory can be read."""
    code = f"""
import resource, time, eigenoptions as eo
start = time.perf_counter()
mdp = eo.maze("rooms:100x100")
options = eo.discover(mdp, {n_options})
print(mdp.n_states, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
    n_states, seconds, gigabytes = subprocess.check_output(
        [sys.executable, "-c", code], text=True
    ).split()
    yield Row(f"map and {n_options} options, {int(n_states):,} states", float(seconds))
    yield Row("peak memory", float(gigabytes), unit="GB")
