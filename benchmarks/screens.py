"""Options of Atari games from the screen, beside those from memory: ``python benchmarks/screens.py``.

Random play with actions held for 8 frames, from the start states that the paper's authors published. `deep.learn` finds
slow functions of the grey screen; each option climbs one of them by looking one step ahead in the emulator. Beside it,
the same with slow features of the memory (`atari.slow_directions`), with random functions of the learned features, and
a random walk. The measures are those of docs/atari.md. One JSON line per game goes to ``out/bench/screens.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import record
from reproduction.atari.measures import measure, own_agreement, points_of
from reproduction.atari.study import reliable_share
from rich.progress import track

import eigenoptions as eo
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import lockstep
from eigenoptions.atari.published_starts import published_starts
from eigenoptions.atari.slow_features import slow_directions
from eigenoptions.deep import learn

GAMES = ("Freeway", "MontezumaRevenge", "MsPacman")
# Frames that an action is held, decisions of an episode and of a roll-out, and functions, each in both signs.
HOLD, EPISODE, ROLL_OUT, FUNCTIONS = 8, 100, 25, 4
DECISIONS, SECONDS = (600, 0.2) if record.QUICK else (4_000, 10.0)


def screen(emulator: Emulator) -> np.ndarray:
    """The screen in grey at half its size: ``(105, 80)`` bytes."""
    picture = emulator.screen().mean(axis=2)[:210]
    return picture.reshape(105, 2, 80, 2).mean(axis=(1, 3)).astype(np.uint8)


def played(game: str, starts: list[Any], rng: np.random.Generator) -> eo.Transitions:
    """Random play from the starts in turn; an episode ends with a life."""
    emulator, rows, number = Emulator(game), [], 0
    while len(rows) < DECISIONS:
        starts[number % len(starts)].reach(emulator)
        number += 1
        lives, before = emulator.lives, screen(emulator)
        for action in rng.integers(emulator.n_actions, size=EPISODE).tolist():
            emulator.hold(action, HOLD)
            after, ended = screen(emulator), emulator.over or emulator.lives < lives
            rows.append((before, action, after, ended))
            before = after
            if ended:
                break
    before, action, after, ended = (np.array(column) for column in zip(*rows, strict=True))
    return eo.Transitions(before, action, after, ended)


def rolled_out(emulator: Emulator, start: Any, potential: Any, n: int, rng: np.random.Generator) -> Any:
    """Roll-outs of n options: the action whose outcome has the highest potential, or none if all lower it.

    `potential` maps screens ``(N, ...)`` to ``(n, N)``; None for a random walk.
    """
    start.reach(emulator)
    first, watch, frames = emulator.save(), list(start.watch), ROLL_OUT * HOLD
    watched = np.zeros((n, frames, len(watch)), dtype=np.uint8)
    length, stopped = np.zeros(n, dtype=int), np.zeros((n, frames), dtype=bool)
    actions, score, died = np.zeros((n, frames), dtype=int), np.zeros(n), np.zeros(n, dtype=bool)
    for i in range(n):
        emulator.restore(first)
        for _ in range(ROLL_OUT):
            here = emulator.save()
            if potential is None:
                action, stops = int(rng.integers(emulator.n_actions)), False
            else:
                seen = [screen(emulator)]
                for a in range(emulator.n_actions):
                    emulator.restore(here)
                    emulator.hold(a, HOLD)
                    seen.append(screen(emulator))
                height = potential(np.stack(seen))[i]
                gain = height[1:] - height[0]
                stops = bool(gain.max() <= 1e-9)
                action = emulator.noop if stops else int(gain.argmax())
                emulator.restore(here)
            held = emulator.hold(action, HOLD, one_life=True)
            at = slice(length[i], length[i] + len(held.rams))
            watched[i, at] = np.stack(held.rams)[:, watch]
            actions[i, at], stopped[i, at] = action, stops
            length[i] += len(held.rams)
            score[i] += sum(held.rewards)
            if held.ended:
                died[i] = True
                break
    return SimpleNamespace(
        watched=watched, length=length, stopped=stopped, actions=actions, score=score, died=died
    )


def measured(rollouts: list[Any], starts: list[Any]) -> dict[str, float]:
    """Shares of roll-outs that arrive, agreement across starts, and share of reliable options."""
    tables = []
    for number, (rolled, start) in enumerate(zip(rollouts, starts, strict=True)):
        n = len(rolled.length)
        keys = {"direction": np.arange(n), "start": np.full(n, number)}
        keys |= {name: np.zeros(n) for name in ("collection", "kind", "basis", "sign")}
        tables.append({**keys, **measure(rolled, start.position)})
    table = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    places = np.stack([points_of(t) for t in tables], axis=1)
    return {
        "arrive": float(table["arrives"].mean()),
        "agreement": float(own_agreement(places).mean()),
        "reliable": reliable_share(table)["reliable"],
        "died": float(table["died"].mean()),
    }


def game_line(game: str, seed: int, n_starts: int, control: bool) -> dict[str, Any]:
    """All ways in one game."""
    rng = np.random.default_rng(seed)
    began = time.process_time()
    starts = published_starts(game)[:n_starts]
    emulator, data = Emulator(game), played(game, starts, rng)
    collected = time.process_time() - began
    # With control, what actions do not influence is ignored: traffic, enemies, clocks.
    try:
        found = learn(data, FUNCTIONS + 1, seconds=SECONDS, rng=seed, control=control)
    except ValueError as refused:
        return {"game": game, "seed": seed, "control": control, "refused": str(refused)}
    trained = time.process_time() - began - collected
    axes = np.concatenate([found.vectors[:, 1:], -found.vectors[:, 1:]], axis=1)
    phi = found.features(data.obs)
    size, V = np.linalg.eigh(np.cov(phi[:, 1:].T))
    mixed = rng.standard_normal((axes.shape[1], int((size > 1e-4 * size[-1]).sum())))
    spread = V[:, size > 1e-4 * size[-1]] / np.sqrt(size[size > 1e-4 * size[-1]])
    random = np.vstack([np.zeros(len(mixed)), spread @ mixed.T])
    ways: dict[str, Any] = {
        "screen, learned": lambda x: (found.features(x) @ axes).T,
        "screen, random functions": lambda x: (found.features(x) @ random).T,
        "random walk": None,
    }
    line: dict[str, Any] = {"game": game, "seed": seed, "starts": len(starts), "options": axes.shape[1]}
    line |= {
        "control": control,
        "decisions": len(data),
        "collected": round(collected, 1),
        "trained": round(trained, 1),
    }
    line["resolved"] = int(found.certificate.resolved.sum()) - 1
    n = axes.shape[1]
    for way, potential in ways.items():
        rolls = [rolled_out(emulator, start, potential, n, rng) for start in starts]
        line[way] = measured(rolls, starts)
    slow = slow_directions(game, starts, decisions=len(data), rng=seed)
    e = slow.vectors[:, slow.n_zero : slow.n_zero + FUNCTIONS].T
    rolls = []
    for start in starts:
        start.reach(emulator)
        how = {"after": "noop", "hold": HOLD, "watch": start.watch}
        rolls.append(
            lockstep(emulator, emulator.save(), np.vstack([e, -e]), slow.features, ROLL_OUT * HOLD, **how)
        )
    line["memory, slow features"] = measured(rolls, starts)
    return {**line, "cpu": round(time.process_time() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one start and little play, for a test")
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=GAMES, metavar="GAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the play")
    parser.add_argument(
        "--starts", type=int, default=1 if record.QUICK else 6, help="start states, at most 6"
    )
    parser.add_argument("--control", action="store_true", help="learn only what actions influence")
    parser.add_argument("--out", type=Path, default=record.OUT / "screens.jsonl", help="file of the results")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    todo = [(game, seed) for seed in given.seeds for game in given.games]
    for game, seed in track(todo, "games", disable=record.QUICK):
        line = game_line(game, seed, given.starts, given.control)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        for way, numbers in line.items():
            if isinstance(numbers, dict):
                for what, value in numbers.items():
                    record.fact(f"{game}, {way}: {what}", value, "")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
