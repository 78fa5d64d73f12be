"""The core of the library against what an expert would write."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from textwrap import dedent

import numba
import numpy as np

import eigenoptions as eo
from benchmarks import expert
from benchmarks.timing import Row, compare, measure


def compare_discovery(n_options: int = 64) -> Iterator[Row]:
    """Compare `discover`, from the table to the options, with SciPy and NumPy."""
    for name in ("four-rooms", "rooms:3x3", "rooms:10x10", "rooms:31x31"):
        mdp = eo.maze(name)
        assert mdp.successors is not None
        _check_same_values(mdp, n_options)

        options = eo.discover(mdp, n_options)
        yield compare(
            f"discover, {len(options)} options, {mdp.n_states:,} states",
            partial(eo.discover, mdp, n_options),
            partial(expert.discover_options, mdp.successors, n_options),
            rival="SciPy eigsh and NumPy value iteration",
            rounds=2 if mdp.n_states > 5000 else 5,
        )


def _check_same_values(mdp: eo.MDP, n_options: int) -> None:
    """Check that both sides give a potential the same value in every state.

    Eigenvectors themselves may differ: in sign, and in the basis of those with the same
    eigenvalue.
    """
    assert mdp.successors is not None
    eigenvectors, values, _ = expert.discover_options(mdp.successors, n_options)
    purposes = []
    for i, eigenvector in enumerate(eigenvectors.T):
        purposes.append(eo.Purpose(np.ascontiguousarray(eigenvector), str(i)))

    ours = eo.solve(mdp, purposes).value.T
    assert np.abs(ours - values).max() < 1e-7 * np.abs(eigenvectors).max()


def compare_diffusion() -> Iterator[Row]:
    """Compare diffusion times of four rooms with a compiled LU per goal and count."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 64)
    assert mdp.successors is not None

    # The next state of each option and state, -1 where the option terminates.
    states = np.arange(mdp.n_states)
    is_running = options.policy >= 0
    moves = mdp.successors[states, np.where(is_running, options.policy, 0)]
    option_successors = np.where(is_running, moves, -1)
    compute_time = numba.njit(expert.compute_diffusion_time)

    def compute_naive_curve() -> list[float]:
        return [
            compute_time(mdp.successors, option_successors[:count])
            for count in range(len(options) + 1)
        ]

    curve = eo.diffusion_curve(mdp, options)
    np.testing.assert_allclose(curve, compute_naive_curve(), rtol=1e-5)
    yield compare(
        "65 diffusion times, four rooms",
        partial(eo.diffusion_curve, mdp, options),
        compute_naive_curve,
        rival="compiled LU per goal and count",
        rounds=3,
    )

    rooms = eo.maze("rooms:3x3")
    options = eo.discover(rooms, 16)
    yield Row(
        "diffusion time, 912 states, 16 options",
        measure(partial(eo.diffusion_time, rooms, options)),
    )
    yield Row(
        "best option chance, 912 states, 16 options",
        measure(partial(eo.best_option_chance, rooms, options)),
    )


def compare_learning(runs: int = 10, episodes: int = 100) -> Iterator[Row]:
    """Compare Q-learning with 8 options with a loop of Python."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, 8)
    start = mdp.start
    goal = mdp.goal
    assert start is not None
    assert goal is not None

    def learn_in_python() -> None:
        for run in range(runs):
            expert.learn_q(
                mdp.successors,
                options.policy,
                start,
                goal,
                episodes=episodes,
                max_steps=100,
                rng=np.random.default_rng(run),
            )

    # The first call compiles.
    eo.q_learning(mdp, options, runs=1, episodes=2)
    yield compare(
        f"q_learning, {runs} runs of {episodes} episodes, four rooms",
        partial(eo.q_learning, mdp, options, runs=runs, episodes=episodes),
        learn_in_python,
        rival="a loop of Python over NumPy arrays",
        rounds=2,
        repeat=10,
    )


def time_first_call() -> Iterator[Row]:
    """Measure a first call in a fresh process, imports included, in CPU seconds."""
    programs = {
        "first discover of four rooms, 8 options": """
            eo.discover(eo.maze("four-rooms"), 8)
        """,
        "the same and a diffusion time": """
            mdp = eo.maze("four-rooms")
            eo.diffusion_time(mdp, eo.discover(mdp, 8))
        """,
        "first q_learning, 10 runs of 100 episodes": """
            eo.q_learning(eo.maze("four-rooms"), runs=10, episodes=100)
        """,
    }
    for name, lines in programs.items():
        program = "import eigenoptions as eo\n" + dedent(lines)
        # Nothing that numba compiled before is found in an empty folder.
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, "NUMBA_CACHE_DIR": cache}
            start = _read_children_seconds()
            subprocess.run([sys.executable, "-c", program], check=True, env=env)
            seconds = _read_children_seconds() - start
        yield Row(name, seconds)


def _read_children_seconds() -> float:
    """Read the CPU seconds of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def time_a_million_states(n_options: int = 64) -> Iterator[Row]:
    """Measure CPU seconds and memory of rooms with a million states.

    They have a process of their own, so that its peak memory can be read.
    """
    program = f"""
import resource, time
import eigenoptions as eo

start = time.process_time()
mdp = eo.maze("rooms:100x100")
eo.discover(mdp, {n_options})
seconds = time.process_time() - start
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(mdp.n_states, seconds, kilobytes / 1e6)
"""
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, text=True)
    n_states, seconds, gigabytes = printed.split()
    yield Row(f"map and {n_options} options, {int(n_states):,} states", float(seconds))
    yield Row("peak memory", float(gigabytes), unit="GB")
