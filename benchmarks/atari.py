"""What the emulator costs, and what is added to it: collection, decomposition and lock-step roll-outs of a game.

Run ``python benchmarks/atari.py`` (Freeway, 600 frames of all 2 x rank options) or ``python benchmarks/atari.py
MsPacman 100``; a whole episode of Freeway is 8,192 frames. All times are CPU seconds of this process, and the machine's
limit is a loop that does nothing but emulate. Ends with 1 if a target is missed.

The share of CPU time inside the emulator is taken by a clock around each of its calls (act, save, restore, key, ram,
lives, over); what the clock itself costs is measured beforehand and taken off both sides. Compiled code is loaded
before the clock starts, and its seconds are printed.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from eigenoptions.atari import collect, directions, find_starts, rank
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import Rollouts, lockstep

SHARE, FEWER, COLLECTING, DECOMPOSING = 0.9, 10.0, 15.0, 1.0
CALLS = ("act", "save", "restore", "key", "ram", "lives", "over")


class Clock:
    """CPU nanoseconds inside timed calls, and their number."""

    def __init__(self) -> None:
        self.inside = self.calls = 0

    def timed(self, function: Any) -> Any:
        """The same function with the clock around it."""

        def call(*given: Any) -> Any:
            began = time.thread_time_ns()
            result = function(*given)
            self.inside += time.thread_time_ns() - began
            self.calls += 1
            return result

        return call

    def around(self, emulator: type[Emulator]) -> type[Emulator]:
        """The same emulator with a clock around its calls."""
        methods = {}
        for name in CALLS:
            method = getattr(emulator, name)
            plain = method.fget if isinstance(method, property) else method
            methods[name] = property(self.timed(plain)) if isinstance(method, property) else self.timed(plain)
        return type("Timed", (emulator,), methods)


def cost_of_the_clock(repeats: int = 100_000) -> tuple[float, float]:
    """Nanoseconds that a timed call adds inside the clock, and in all."""
    clock = Clock()
    nothing = lambda: None  # noqa: E731
    timed = clock.timed(nothing)
    began = time.thread_time_ns()
    for _ in range(repeats):
        nothing()
    bare = time.thread_time_ns() - began
    began = time.thread_time_ns()
    for _ in range(repeats):
        timed()
    whole = time.thread_time_ns() - began
    return clock.inside / repeats, (whole - bare) / repeats


def limit(emulator: Emulator, frames: int = 3000) -> float:
    """Frames per CPU second of a loop that only emulates."""
    emulator.begin()
    began = time.process_time()
    for t in range(frames):
        emulator.act(t % emulator.n_actions)
    return frames / (time.process_time() - began)


def share(game: str, way: tuple[int, ...], e: np.ndarray, frames: int) -> tuple[Rollouts, float, float]:
    """Roll-outs, their CPU seconds, and the share of them inside the emulator."""
    clock = Clock()
    emulator = clock.around(Emulator)(game)
    emulator.replay(way)
    state = emulator.save()
    lockstep(emulator, state, e[:2], None, 1)  # loads compiled code
    within, whole = cost_of_the_clock()
    clock.inside = clock.calls = 0
    began = time.process_time()
    found = lockstep(emulator, state, e, None, frames, until="game", progress=reporter(frames))
    took = time.process_time() - began
    inside, total = (clock.inside - within * clock.calls) / 1e9, took - whole * clock.calls / 1e9
    return found, total, inside / total


def reporter(frames: int) -> Any:
    """A line now and then, with CPU seconds, clock included."""
    began = time.process_time()

    def progress(done: int, total: int) -> None:
        if done % max(frames // 8, 1) == 0:
            print(f"    frame {done} of {total}, {time.process_time() - began:.0f} s", flush=True)

    return progress


def main(game: str = "Freeway", frames: int = 600) -> int:
    missed = []

    def target(what: str, met: bool) -> str:
        if not met:
            missed.append(what)
        return "met" if met else "MISSED"

    emulator = Emulator(game)
    speed = limit(emulator)
    print(f"{emulator.game}: the machine emulates {speed:,.0f} frames per CPU second, and nothing else")

    began = time.process_time()
    starts = find_starts(game)
    print(f"six start states found in {time.process_time() - began:.1f} s")
    began = time.process_time()
    gram = collect(game, starts)
    took = time.process_time() - began
    met = target("collection", took < COLLECTING)
    print(f"{len(gram):,} rows of {gram.n_transitions:,} transitions collected in {took:.1f} s", end="")
    print(f" ({gram.n_transitions / took / speed:.0%} of the limit), target {COLLECTING:.0f} s: {met}")
    began = time.process_time()
    spectrum = directions(gram)
    took = time.process_time() - began
    met = target("decomposition", took < DECOMPOSING)
    print(f"25,000 of them decomposed in {took:.2f} s, target {DECOMPOSING:.0f} s: {met}")

    e = spectrum.vectors[:, spectrum.n_zero :].T
    e = np.concatenate([e, -e])
    print(f"rank {rank(spectrum)}: {len(e)} options from the first start, at most {frames} frames")
    found, took, inside = share(game, starts[0].actions, e, frames)
    # Frames of options that are rolled out one by one.
    alone = int(found.length.sum()) * emulator.n_actions
    met = target("share", inside >= SHARE)
    print(f"  {took:.1f} s, {inside:.1%} of it inside the emulator, target {SHARE:.0%}: {met}")
    fewer = alone / found.acts
    met = target("acts", fewer >= FEWER) if emulator.game == "Freeway" else "set for Freeway only"
    print(f"  {found.acts:,} acts, alone {alone:,}: {fewer:.1f}x fewer, target {FEWER:.0f}x: {met}")
    print(f"  {found.acts / took:,.0f} tried frames per second, {found.acts / took / speed:.0%} of the limit")
    states = found.frontier[found.frontier > 0]
    print(
        f"  {states.mean():.1f} distinct states per frame, at most {states.max()}; best score {found.score.max():g}"
    )
    if missed:
        print(f"missed: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2], *map(int, sys.argv[2:3])))
