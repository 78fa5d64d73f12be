"""The same policies on every machine.

CPU type, BLAS threads, compiler target, seed and solver do not change them.

Each subprocess computes the options of all mazes under other settings (OpenBLAS chooses
its kernels by ``OPENBLAS_CORETYPE``, Numba compiles for ``NUMBA_CPU_NAME``) and writes
them to a file; the files must agree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.mdp.mazes import perfect_map, rooms_map
from tests.tables import make_slippery

ROOT = Path(__file__).parent.parent
# Kinds of OpenBLAS kernels, and the CPU flag that each needs.
CORE_TYPES = {
    "Prescott": "pni",
    "Nehalem": "sse4_2",
    "Haswell": "avx2",
    "SkylakeX": "avx512f",
}
SETTINGS = {
    "Prescott": {},
    "Nehalem": {"OPENBLAS_NUM_THREADS": "2"},
    "Haswell": {
        "OPENBLAS_NUM_THREADS": "2",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
    },
    "SkylakeX": {},
}


def make_torus(high: int, wide: int) -> eo.MDP:
    """A grid without borders."""
    row, column = np.divmod(np.arange(high * wide), wide)
    moves = [
        ((row + dy) % high) * wide + (column + dx) % wide
        for dy, dx in ((-1, 0), (0, 1), (1, 0), (0, -1))
    ]
    return eo.MDP(np.eye(high * wide)[np.stack(moves, axis=1)])


def make_mazes(large: bool) -> dict[str, eo.MDP]:
    """Mazes with repeated eigenvalues and many equally good actions."""
    if not large:
        return {
            "four-rooms": eo.maze("four-rooms"),
            "open-room": eo.maze("open-room"),
            "torus": make_torus(9, 9),
            "tiling": eo.maze(rooms_map(4, 4, 5, centred=True)),
        }
    return {
        "i-maze": eo.maze("i-maze"),
        "square": eo.maze("\n".join(["." * 12] * 12)),
        "slippery": make_slippery(eo.maze("i-maze")),
        "large square": eo.maze("\n".join(["." * 27] * 27)),
        "large torus": make_torus(26, 26),
        "large tiling": eo.maze(rooms_map(5, 5, 6, centred=True)),
        "perfect maze": eo.maze(perfect_map(22, 22)),
    }


def compute_options(large: bool, seed: int) -> dict[str, np.ndarray]:
    """Policies and values of the options of every maze.

    Those of large mazes by the dense and the sparse solver.
    """
    results = {}
    for name, mdp in make_mazes(large).items():
        W = eo.graph(mdp)
        for solver in ("all",) if mdp.n_states <= 300 else ("all", "few"):
            sp = eo.spectrum(W, 33 if solver == "few" else None, rng=seed)
            options = eo.solve(
                mdp, eo.eigenpurposes(sp)[: None if mdp.n_states <= 300 else 64]
            )
            results[f"{name}/{solver}/policy"] = options.policy
            results[f"{name}/{solver}/value"] = options.value
    # Every other method, on symmetric rooms that also have doors.
    rooms = eo.maze(rooms_map(2, 2, 5, centred=True))
    for method in eo.methods():
        settings = (
            {"rewards": -np.ones(rooms.n_states)} if method == "reward-aware" else {}
        )
        results[f"{method}/policy"] = eo.discover(rooms, 4, method, **settings).policy
    for method in (
        "community",
        "covering",
        "diffusion",
        "neo",
        "successor",
        "successor-goals",
    ):
        results[f"{method}/open/policy"] = eo.discover("open:9x9", 4, method).policy
    return results


def supported_core_types() -> list[str]:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return []
    return [name for name, flag in CORE_TYPES.items() if flag in flags]


def run_on(core: str, large: bool, seed: int, folder: Path) -> dict[str, np.ndarray]:
    """The results of `compute_options` in a process of its own."""
    out = folder / f"{core}.npz"
    env = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": core,
        **SETTINGS[core],
    }
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    if "NUMBA_CPU_NAME" in env:
        env["NUMBA_CACHE_DIR"] = str(folder / "numba")
    code = (
        "import numpy as np; from tests.test_machines import compute_options; "
        f"np.savez({str(out)!r}, **compute_options({large}, {seed}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    with np.load(out) as file:
        return dict(file)


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_options_on_every_machine_are_the_same(large: bool, tmp_path: Path) -> None:
    cores = supported_core_types()
    if len(cores) < 2:
        pytest.skip("this CPU has one kind of OpenBLAS kernels")
    cores = (
        cores if large else [cores[0], "Haswell" if "Haswell" in cores else cores[-1]]
    )
    expected = compute_options(large, len(cores))
    for seed, core in enumerate(cores):
        results = run_on(core, large, seed, tmp_path)
        for name, array in results.items():
            # The dense solver here is compared with both solvers there.
            reference = expected[name.replace("/few/", "/all/")]
            if name.endswith("policy"):
                assert (array == reference).all(), (
                    f"{name} {core}: {(array != reference).sum()} actions"
                )
            else:
                np.testing.assert_allclose(
                    array, reference, rtol=0, atol=1e-9, err_msg=f"{name} {core}"
                )
