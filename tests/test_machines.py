"""The same on every machine: CPU type, BLAS threads, compiler target, seed and solver do not change a policy.

Each subprocess computes the options of all mazes under other settings (OpenBLAS chooses its kernels by
``OPENBLAS_CORETYPE``, Numba compiles for ``NUMBA_CPU_NAME``) and writes them to a file; the files must agree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.discovery.frontier import Explorer
from eigenoptions.mdp.maps import perfect_map, rooms_map

ROOT = Path(__file__).parent.parent
# Kinds of OpenBLAS kernels, and the CPU flag that each needs.
CORE_TYPES = {"Prescott": "pni", "Nehalem": "sse4_2", "Haswell": "avx2", "SkylakeX": "avx512f"}
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
SETTINGS = {
    "Prescott": {"seed": "0"},
    "Nehalem": {"seed": "1", "OPENBLAS_NUM_THREADS": "2"},
    "Haswell": {"seed": "2", "OPENBLAS_NUM_THREADS": "2", **GENERIC},
    "SkylakeX": {"seed": "3"},
}


def torus(high: int, wide: int) -> eo.MDP:
    """A grid without borders."""
    row, column = np.divmod(np.arange(high * wide), wide)
    moves = [
        ((row + dy) % high) * wide + (column + dx) % wide for dy, dx in ((-1, 0), (0, 1), (1, 0), (0, -1))
    ]
    return eo.MDP(np.eye(high * wide)[np.stack(moves, axis=1)])


def cycle(n: int) -> csr_array:
    here = np.arange(n)
    ahead = csr_array((np.ones(n), (here, (here + 1) % n)), shape=(n, n))
    return csr_array(ahead + ahead.T)


def slippery(mdp: eo.MDP) -> eo.MDP:
    """The same moves, which go to one side or the other with probability 0.2."""
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return eo.MDP(0.8 * P + 0.1 * (np.roll(P, 1, axis=1) + np.roll(P, -1, axis=1)))


def computed(seed: int) -> dict[str, np.ndarray]:
    """Policies and values of every maze, and the upper end of a cycle's spectrum."""
    small = {
        "four-rooms": eo.maze("four-rooms"),
        "open-room": eo.maze("open-room"),
        "i-maze": eo.maze("i-maze"),
        "square": eo.maze("\n".join(["." * 12] * 12)),
        "torus": torus(9, 9),
        "tiling": eo.maze(rooms_map(3, 3, 5, centred=True)),
        "slippery": slippery(eo.maze("i-maze")),
    }
    large = {
        "large square": eo.maze("\n".join(["." * 27] * 27)),
        "large torus": torus(26, 26),
        "large tiling": eo.maze(rooms_map(5, 5, 6, centred=True)),
        "perfect maze": eo.maze(perfect_map(22, 22)),
    }
    found = {}
    for name, mdp in {**small, **large}.items():
        W = eo.graph(mdp)
        solvers = ("auto",) if name in small else ("dense", "sparse")
        for solver in solvers:
            sp = eo.spectrum(W, None if name in small else 33, solver=solver, rng=seed)
            options = eo.solve(mdp, eo.eigenpurposes(sp))
            found[f"{name}/{solver}/policy"], found[f"{name}/{solver}/value"] = options.policy, options.value
    # The seed of the explorer is its own: it decides ties, and must decide the same ones.
    square = small["square"]
    found["exploration/policy"] = Explorer(square.n_states, 4, rng=0).walk(square, 1500).obs
    found["cycle/auto/value"] = eo.spectrum(cycle(600), rng=seed).vectors[:, -32:]
    return found


def supported() -> list[str]:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return []
    return [name for name, flag in CORE_TYPES.items() if flag in flags]


def run(core: str, folder: Path) -> dict[str, np.ndarray]:
    """What `computed` gives in a process of its own."""
    settings = dict(SETTINGS[core])
    seed, out = settings.pop("seed"), folder / f"{core}.npz"
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": core, **settings}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *sys.path])
    if "NUMBA_CPU_NAME" in settings:
        env["NUMBA_CACHE_DIR"] = str(folder / "numba")
    code = f"import numpy as np; from tests.test_machines import computed; np.savez({str(out)!r}, **computed({seed}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, done.stderr
    with np.load(out) as file:
        return dict(file)


def test_policies_are_the_same_on_every_machine(tmp_path: Path) -> None:
    cores = supported()
    if len(cores) < 3:
        pytest.skip("this CPU has fewer than three kinds of OpenBLAS kernels")
    first, *others = (run(core, tmp_path) for core in cores)
    different = []
    for name, expected in first.items():
        for core, other in zip(cores[1:], others, strict=True):
            # Dense and sparse solvers are compared too, by the name that comes first.
            for solver in {"dense", "sparse"} if "/dense/" in name else {name.split("/")[1]}:
                got = other[name.replace("/dense/", f"/{solver}/")]
                if name.endswith("policy"):
                    wrong = int((got != expected).sum())
                    different += [f"{name} {core} {solver}: {wrong} of {got.size} actions"] * (wrong > 0)
                else:
                    gap = float(np.abs(got - expected).max())
                    different += [f"{name} {core} {solver}: {gap:.1e}"] * (gap > 1e-9)
    assert not different, "\n".join(different)
