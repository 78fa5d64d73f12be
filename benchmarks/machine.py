"""What this machine can do at the most, and how close the library comes: ``python benchmarks/machine.py``.

Memory by a triad ``a = b + s c`` over arrays far larger than any cache (24 bytes an element), on one core and on two.
Against it the solver's sweeps, by the bytes that a sweep would move if nothing stayed in a cache. The Arcade Learning
Environment by frames per second, in a bare loop over `ale_py` and through `eigenoptions.atari.Emulator`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import record
from numba import njit

import eigenoptions as eo
from eigenoptions.mdp.maps import rooms_map

ELEMENTS = 1_000_000 if record.QUICK else 25_000_000
FRAMES = 500 if record.QUICK else 6_000  # less than a game lasts: when it is over, nothing is emulated
PER_BACKUP = 42.0  # bytes: x read and written, e read, its share of the moves and of neighbours out of cache


@njit(cache=True, nogil=True)
def triad(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        a[i] = b[i] + s * c[i]


def memory(cores: int) -> float:
    """GB per second of wall time, all cores together, the best of five."""
    arrays = [[np.ones(ELEMENTS // cores) for _ in range(3)] for _ in range(cores)]
    triad(*(part[:8] for part in arrays[0]), 2.0)
    with ThreadPoolExecutor(cores) as pool:

        def all_at_once() -> None:
            for done in [pool.submit(triad, *part, 2.0) for part in arrays]:
                done.result()

        best = min(record.clock(all_at_once, wall=True)[0] for _ in range(5))
    return 24.0 * ELEMENTS / best / 1e9


def sweeps(limit: float) -> None:
    """Backups per second of eight options at once on a tiling of rooms, in units of the triad."""
    from eigenoptions._kernels.planning import LANES, climb, moves
    from eigenoptions.options.solver import renumbered

    mdp = eo.maze(rooms_map(4, 4) if record.QUICK else rooms_map(55, 55))
    assert mdp.successors is not None
    known = moves(*renumbered(mdp.successors))
    sp = eo.spectrum(eo.graph(mdp), LANES // 2 + 1)
    E = np.stack([p.direction for p in eo.eigenpurposes(sp)], axis=1)
    E = np.ascontiguousarray(E[known.order])
    spent, backups = record.seconds(lambda: climb(known, E, E.copy(), 0.9), 3)
    rate = float(backups) * LANES / spent
    record.fact(f"solver, {mdp.n_states:,} states: action backups", 4 * rate, "/s")
    record.fact(
        "solver, modelled traffic over the triad",
        PER_BACKUP * rate / 1e9 / limit,
        "",
        "above 1: blocks of states are swept in cache",
    )


def frames(begin: Any, act: Any, code: Any) -> float:
    """Frames a CPU second."""

    def play() -> None:
        begin()
        for _ in range(FRAMES):
            act(code)

    return FRAMES / record.seconds(play, 2)[0]


def emulator(game: str = "Freeway") -> None:
    if importlib.util.find_spec("ale_py") is None:
        record.skip("emulator frames", "ale-py is not installed: pip install 'eigenoptions[atari]'")
        return
    import ale_py

    from eigenoptions.atari.emulator import Emulator

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.loadROM(ale_py.roms.get_rom_path(game.lower()))
    ours = Emulator(game)
    up = ours.actions.index("UP")
    bare, mine = 0.0, 0.0
    for _ in range(2):  # in turns
        bare = max(bare, frames(ale.reset_game, ale.act, ale.getMinimalActionSet()[up]))
        mine = max(mine, frames(ours.begin, ours.act, up))
    record.row(
        f"emulator frames, {game}", mine, bare, "ale_py alone", unit="frames/s", note="the machine's limit"
    )

    if ale.game_over() or ours.over:
        raise SystemExit(f"{game} was over before {FRAMES} frames: its frames per second cannot be measured")

    def there_and_back() -> None:
        for _ in range(FRAMES // 10):
            ours.restore(ours.save())

    spent, _ = record.seconds(there_and_back, 2)
    record.fact("a state saved and restored", spent / (FRAMES // 10) * 1e6, "us")


def main() -> int:
    one = memory(1)
    record.fact("triad on one core", one, "GB/s", "wall")
    if (os.cpu_count() or 1) > 1:
        record.fact("triad on two cores", memory(2), "GB/s", "wall, both together")
    sweeps(one)
    emulator()
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
