"""Learned eigenfunctions on the 13 grids of the literature, from xy to noisy frames: ``make bench-deep``.

Each run learns the first ten eigenfunctions of the random walk from a million transitions (episodes of 50 steps) and
compares them with the true ones. Beside it: a table of counts from the same samples, which bounds what these samples
allow, and ALLO (Gomez, Bowling and Machado, ICLR 2024) with the same encoder and the same CPU seconds. Runs are lines
of ``out/bench/deep.jsonl``; one that is already there is not repeated. ``--table`` prints the results, nothing is run.
Without ``--full`` it takes at most 20 minutes on two idle cores: 5 seeds from xy, one seed from pixels and frames on
all grids, noisy frames on the nine grids of up to 300 states, ALLO on three, and one seed of each world to explore.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import record
from rich.progress import track
from worlds import cosines, dataset, grid, noisy, observed, span, truth

import eigenoptions as eo
from eigenoptions._validation import make_generator
from eigenoptions.deep import Dataset, learn, objectives, training
from eigenoptions.deep.backend import one_thread, torch
from eigenoptions.deep.encoder import untrained
from eigenoptions.deep.training import Adam
from eigenoptions.discovery.trained import MAX_FIT_TRANSITIONS, PATIENCE, fit_numbered

KINDS = ("xy", "pixel", "frame", "noise")
# Eigenfunctions after the constant one, and transitions.
K, TRANSITIONS = 10, 20_000 if record.QUICK else 1_000_000
# Transitions where each frame is recorded with its own noise and takes its place in memory: of a grid, and of a world
# that is explored.
NOISY_TRANSITIONS, NOISY_WORLD = 100_000, 60_000
# CPU seconds of training by kind, for grids of up to so many states, and seeds. Seed 0 is for choosing settings.
SECONDS = {
    "xy": {400: 3.0, 1000: 12.0, 10_000: 20.0},
    "pixel": {300: 3.0, 1000: 20.0, 10_000: 50.0},
    "frame": {300: 3.0, 1000: 20.0, 10_000: 50.0},
    "noise": {300: 5.0, 10_000: 30.0},
}
WORLD_SECONDS = 8.0
# Shares of the training after which the score is taken, beside the end.
CHECKPOINTS = {
    "xy": (1 / 16, 1 / 8, 1 / 4, 1 / 2),
    "pixel": (1 / 8, 1 / 4, 1 / 2),
    "frame": (1 / 8, 1 / 4, 1 / 2),
    "noise": (1 / 2,),
}
# Number of seeds by kind, and with --full.
SEEDS = {"xy": 5, "pixel": 1, "frame": 1, "noise": 1}
FULL_SEEDS = {"xy": 10, "pixel": 3, "frame": 3, "noise": 3}
# Grids of noisy frames and of ALLO without --full.
NOISY_GRIDS = (
    *("GridRoom-1", "GridRoom-4", "GridRoom-16", "GridRoomSym-4"),
    *("GridMaze-7", "GridMaze-9", "GridMaze-11", "GridMaze-17", "GridMaze-19"),
)
ALLO_GRIDS = ("GridRoom-4", "GridRoom-16", "GridRoom-64")
# ALLO: CPU seconds, more than ours take from xy, and step size.
ALLO_SECONDS, ALLO_RATE = 15.0, 1e-3
# Its published mean cosine of 11 functions (the constant included) over 60 seeds, from xy and pixels.
PUBLISHED = {
    "GridRoom-1": (0.9912, 0.9914),
    "GridRoom-4": (0.9965, 0.9965),
    "GridRoom-16": (0.9990, 0.9992),
    "GridRoom-32": (0.9982, 0.9073),
    "GridRoom-64": (0.9917, None),
    "GridRoomSym-4": (0.8411, 0.8434),
    "GridMaze-7": (0.9996, 0.9997),
    "GridMaze-9": (0.9989, 0.9988),
    "GridMaze-11": (None, 0.9349),
    "GridMaze-17": (0.9994, 0.9995),
    "GridMaze-19": (0.9989, 0.9789),
    "GridMaze-26": (0.9984, 0.9330),
    "GridMaze-32": (0.9908, 0.6198),
}
# Worlds that are explored with learned options, and what is seen of them.
WORLDS = (("nine rooms", "frame"), ("nine rooms", "noise"), ("MiniGrid", "map"), ("MiniGrid", "view"))
# Transitions, options, chance of an option, walks per seed, and steps after which states are counted.
WORLD_TRANSITIONS, WORLD_OPTIONS, OPTION_CHANCE, WALKS = 200_000, 16, 0.1, 40
STEPS = (500, 1000, 2000)


@dataclass(frozen=True)
class Run:
    """One run: a grid, what is observed, a seed, the method, and its CPU seconds of training."""

    grid: str
    kind: str
    seed: int
    method: str
    seconds: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies it in the file of results."""
        return self.grid, self.kind, self.seed, self.method, self.seconds, TRANSITIONS


def table(name: str, data: Dataset) -> dict[str, Any]:
    """What a table of counts reaches: one-hot states in place of features, pairs at lag 1 or 5, the better one.

    Every visit counts, as for the methods of the literature. `learn` counts each action of a repeated observation
    equally; a table that does so is exact once each action was taken in each state, so its bound is 1.
    """
    n, found = grid(name).n_states, []
    for lag in (1, 5):
        before, after = data.all.pairs(lag)
        W = np.bincount(before * n + after, minlength=n * n).reshape(n, n).astype(float)
        W = W + W.T
        root = np.sqrt(W.sum(axis=1))
        values, vectors = np.linalg.eigh(W / root / root[:, None])
        values, vectors = values[::-1], (vectors / root[:, None])[:, ::-1]
        error = 1 - (values[1 : K + 1] if lag == 1 else np.clip(values[1 : K + 1], 0, 1) ** (1 / lag))
        f = vectors[:, 1 : K + 1]
        found.append({"cosine": cosines(name, f), "span": span(name, f), "error": _errors(name, error)})
    return max(found, key=lambda entry: float(np.mean(entry["cosine"])))


def _errors(name: str, values: np.ndarray) -> list[float]:
    exact = truth(name)[0][1 : K + 1]
    return (np.abs(values - exact) / exact).tolist()


def ours(name: str, data: Dataset, run: Run) -> dict[str, Any]:
    """What `learn` finds, and its score on the way: the clock stands while a score is compared with the truth."""
    clock, curve, shown = Clock(), [], observed(name, run.kind)
    with one_thread():
        learner = training._Run(data, K + 1, "auto", training.Training(), make_generator(run.seed))
        n_steps = training._budget(learner, run.seconds, None)
        if data.repeating:
            # Computed once, and used by every Ritz step: counted before the first one.
            _ = data.all.table, learner.train_part.table, learner.held_part.table
        points = {max(1, round(share * n_steps)) for share in CHECKPOINTS[run.kind]}

        def check(done: int, total: int) -> None:
            if done not in points:
                return
            before = clock.seconds
            found = learner._spectrum(learner._copy(), np.zeros((0, 3)))
            # One Ritz step belongs to the time in which this score could have been had.
            at = clock.seconds
            curve.append([round(at, 2), score(found), done])
            clock.forget(clock.seconds - before)

        def score(found: Any) -> float:
            return float(np.mean(cosines(name, (found.features(shown) @ found.vectors)[:, 1:])))

        found = learner.train(n_steps, check)
    spent, f = clock.seconds, (found.features(shown) @ found.vectors)[:, 1:]
    curve.append([round(spent, 2), float(np.mean(cosines(name, f))), n_steps])
    return {
        "cosine": cosines(name, f),
        "span": span(name, f),
        "error": _errors(name, found.values[1:]),
        "resolved": int(found.certificate.resolved.sum()) - 1,
        "steps": int(found.history[-1, 0]),
        "cpu": round(spent, 2),
        "curve": curve,
    }


class Clock:
    """CPU seconds of this process since it was made, without those that are forgotten."""

    def __init__(self) -> None:
        self.began = time.process_time()

    @property
    def seconds(self) -> float:
        """CPU seconds that count."""
        return time.process_time() - self.began

    def forget(self, seconds: float) -> None:
        """Leave so many seconds out."""
        self.began += seconds


def allo(name: str, data: Dataset, run: Run) -> dict[str, Any]:
    """ALLO's own outputs, without a Ritz step: its encoder is ours, and it trains for the same CPU seconds."""
    rng = np.random.default_rng(run.seed)
    seen = data.observations[:: max(1, len(data.observations) // 4096)]
    with one_thread():
        size = np.ones(2) if run.kind == "xy" else np.ones(1)
        encoder = untrained("auto", seen, size, not data.repeating, rng)
        weights = encoder.trainable()
        head = torch.from_numpy(rng.standard_normal((256, K + 1)).astype(np.float32) / 16).requires_grad_()
        optimiser, state, steps = Adam([*weights.values(), head]), {}, 0
        stored = encoder.inputs(data.observations)
        began = time.process_time()
        while time.process_time() - began < run.seconds:
            parts = [*data.all.draw(1024, 0.9, rng), *(data.all.draw(1024, 0.0, rng)[0] for _ in "ab")]
            which, back = np.unique(np.concatenate(parts), return_inverse=True)
            x = stored[torch.from_numpy(which)]
            outputs = (encoder.hidden(x, weights) @ head)[torch.from_numpy(back)].split(1024)
            objectives.allo(*outputs, state=state).backward()
            optimiser.step(ALLO_RATE)
            steps += 1
        clean = encoder.inputs(observed(name, run.kind))
        functions = (encoder.hidden(clean, weights) @ head).detach().double().numpy()
        duals = -0.5 * state["dual"].diagonal().double().numpy()[1:]
    return {
        "cosine": cosines(name, functions[:, 1:]),
        "error": _errors(name, _undiscounted(duals)),
        "steps": steps,
    }


def _undiscounted(values: np.ndarray, discount: float = 0.9) -> np.ndarray:
    """Values of one transition from those of pairs at geometric distances."""
    kept = np.clip(1 - values, 1e-9, 1.0)
    return 1 - kept / (1 - discount + discount * kept)


def explore(data: Dataset, run: Run) -> dict[str, Any]:
    """States seen by a walk with options: learned from what is observed, exact ones of the table, and none."""
    began = time.process_time()
    mdp, images = grid(run.grid), observed(run.grid, run.kind)
    found = learn(data, WORLD_OPTIONS // 2 + 1, seconds=run.seconds, rng=run.seed)
    # Noise is new in every step: so many pictures of each state stand for it.
    versions = 8 if run.kind == "noise" else 1
    rng = np.random.default_rng(run.seed)
    shown = images if versions == 1 else np.concatenate([noisy(images, rng) for _ in range(versions)])
    purposes = eo.eigenpurposes(found)
    how = {"n_actions": mdp.n_actions, "gamma": 0.9}
    fitted = fit_numbered(*data.sample(MAX_FIT_TRANSITIONS), purposes, found.features, **how)
    spent = time.process_time() - began
    exact = eo.discover(mdp, WORLD_OPTIONS, operator="combinatorial")
    policy, height = (
        x.reshape(len(fitted), versions, -1) for x in (fitted.actions(shown), fitted.potential(shown))
    )
    f = np.linalg.qr((found.features(images) @ found.vectors)[:, 1:])[0]
    pvfs = eo.spectrum(eo.graph(mdp), WORLD_OPTIONS // 2 + 1, "combinatorial").vectors[:, 1:]
    return {
        "learned": seen_states(mdp, policy, height, run.seed),
        "exact": seen_states(mdp, exact.policy[:, None], None, run.seed),
        "random": seen_states(mdp, exact.policy[:0, None], None, run.seed),
        "discovered": round(spent, 2),
        "span": float(np.linalg.norm(f.T @ pvfs) ** 2 / pvfs.shape[1]),
    }


def seen_states(mdp: eo.MDP, policy: np.ndarray, height: np.ndarray | None, seed: int) -> list[float]:
    """Mean number of states seen after 500, 1,000 and 2,000 steps, over walks from the first state.

    Policies and potentials are ``(options, versions, S)``: one of the versions is drawn in each step. With potentials,
    an option ends after PATIENCE steps without a rise.
    """
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(STEPS))
    versions = policy.shape[1]
    for _ in range(WALKS):
        state, option, visited, seen = 0, -1, {0}, []
        best, idle = -np.inf, 0
        for _ in range(STEPS[-1]):
            now = int(rng.integers(versions))
            if option < 0 and len(policy) and rng.random() < OPTION_CHANCE:
                able = np.flatnonzero(policy[:, now, state] >= 0)
                option, best, idle = (int(rng.choice(able)) if len(able) else -1), -np.inf, 0
            elif option >= 0 and (policy[option, now, state] < 0 or idle >= PATIENCE):
                option = -1
            action = int(policy[option, now, state]) if option >= 0 else int(rng.integers(mdp.n_actions))
            state = int(mdp.successors[state, action])
            visited.add(state)
            seen.append(len(visited))
            if option >= 0 and height is not None:
                idle = 0 if height[option, now, state] > best else idle + 1
                best = max(best, height[option, now, state])
        counts += [seen[n - 1] for n in STEPS]
    return (counts / WALKS).round(1).tolist()


def work(run: Run) -> dict[str, Any]:
    """The line of a run."""
    n = WORLD_TRANSITIONS if run.method == "explore" else TRANSITIONS
    if run.kind == "noise":
        n = min(n, NOISY_WORLD if run.method == "explore" else NOISY_TRANSITIONS)
    data = dataset(run.grid, "xy" if run.method == "table" else run.kind, run.seed, n)
    began = time.process_time()
    if run.method == "table":
        found = table(run.grid, data)
    elif run.method == "explore":
        found = explore(data, run)
    else:
        found = (allo if run.method == "allo" else ours)(run.grid, data, run)
    cpu = time.process_time() - began
    line = {**vars(run), "transitions": TRANSITIONS, "states": grid(run.grid).n_states, "cpu": round(cpu, 2)}
    return {**line, **found, "load": round(os.getloadavg()[0], 1)}


def _by_states(name: str, by: dict[int, Any]) -> Any:
    """The entry for grids of so many states."""
    return next(value for states, value in by.items() if grid(name).n_states <= states)


def plan(given: argparse.Namespace) -> Iterator[Run]:
    """The runs that are asked for: short ones first, so that a run that is stopped leaves a table."""
    seeds = FULL_SEEDS if given.full else SEEDS
    for kind in given.kinds:
        names = [n for n in given.grids if kind != "noise" or given.full or n in NOISY_GRIDS]
        for seed in range(1, 1 + (given.seeds or seeds[kind])):
            for name, method in product(names, given.methods):
                if method == "table":
                    # The same whatever is observed, but for the number of transitions.
                    yield Run(name, "noise" if kind == "noise" else "xy", seed, method, 0.0)
                elif method == "vamp2":
                    yield Run(name, kind, seed, method, given.seconds or _by_states(name, SECONDS[kind]))
                elif seed == 1 and kind != "noise" and (given.full or (kind == "xy" and name in ALLO_GRIDS)):
                    # One run of the rival per grid: it is slow to settle, not noisy.
                    yield Run(name, kind, seed, method, given.seconds or ALLO_SECONDS)
    for seed in range(given.worlds):
        yield from (Run(*world, seed, "explore", WORLD_SECONDS) for world in WORLDS)


def stored(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    names = ("grid", "kind", "seed", "method", "seconds", "transitions")
    return {tuple(line[name] for name in names): line for line in lines}


def carry_out(runs: list[Run], path: Path, workers: int) -> None:
    """Run what is not stored yet, and append each line as soon as it is known."""
    known = stored(path)
    left = list(dict.fromkeys(run for run in runs if run.key not in known))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for line in track(_lines(left, workers), "learning", total=len(left), disable=record.QUICK):
            file.write(json.dumps(line) + "\n")
            file.flush()


def _lines(runs: list[Run], workers: int) -> Iterator[dict[str, Any]]:
    """Lines of runs as they end."""
    if workers == 1:
        yield from map(work, runs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from (done.result() for done in as_completed([pool.submit(work, run) for run in runs]))


def rows(lines: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    """One row per grid: means over seeds."""
    of_kind = [line for line in lines if line["kind"] == kind and line["method"] != "explore"]
    for name in PUBLISHED:
        mine = [line for line in of_kind if line["grid"] == name]
        by = {m: [x for x in mine if x["method"] == m] for m in ("vamp2", "allo", "table")}
        if not by["vamp2"]:
            continue
        most = max(line["seconds"] for line in by["vamp2"])
        best = [line for line in by["vamp2"] if line["seconds"] == most]
        seeds = {line["seed"] for line in best}
        same = "noise" if kind == "noise" else "xy"
        bound = [x for x in lines if (x["method"], x["grid"], x["kind"]) == ("table", name, same)]
        bound = [x for x in bound if x["seed"] in seeds]
        reached = [next((p[0] for p in x["curve"] if p[1] >= 0.99), None) for x in best]
        published = PUBLISHED[name][0 if kind == "xy" else 1]
        mean = float(np.mean([line["cosine"] for line in best]))
        yield {
            "grid": name,
            "states": best[0]["states"],
            "seeds": len(best),
            "mean": mean,
            "minimum": float(np.mean([min(line["cosine"]) for line in best])),
            "bound": float(np.mean([line["cosine"] for line in bound])) if bound else None,
            "span": float(np.mean([line.get("span", np.nan) for line in best])),
            "span bound": float(np.mean([line.get("span", np.nan) for line in bound])) if bound else None,
            "of 11": (K * mean + 1) / (K + 1),
            "published": published,
            "error": float(np.mean([line["error"] for line in best])),
            "cpu": float(np.mean([line["cpu"] for line in best])),
            "to 0.99": None if None in reached else float(np.mean(reached)),
            "allo": float(np.mean([line["cosine"] for line in by["allo"]])) if by["allo"] else None,
        }


def report(lines: list[dict[str, Any]]) -> None:
    """The table of each kind in Markdown, and the aims."""
    for kind in KINDS:
        found = list(rows(lines, kind))
        if not found:
            continue
        print(
            f"\n{kind}\n\n| grid (states) | seeds | mean | minimum | bound | span (bound) | eigenvalue error | CPU s | "
            "CPU s to 0.99 | of 11: ours | of 11: ALLO published | ALLO here |\n"
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        )
        for row in found:
            share = f"{100 * row['error']:.1f}%"
            print(
                f"| {row['grid']} ({row['states']:,}) | {row['seeds']} | {_4(row['mean'])} | {_4(row['minimum'])} | "
                f"{_4(row['bound'])} | {_4(row['span'])} ({_4(row['span bound'])}) | {share} | "
                f"{row['cpu']:.1f} | {_1(row['to 0.99'])} | {_4(row['of 11'])} | "
                f"{_4(row['published'])} | {_4(row['allo'])} |"
            )
    worlds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        if line["method"] == "explore":
            worlds.setdefault((line["grid"], line["kind"]), []).append(line)
    if worlds:
        print(
            "\n| states seen after 500, 1,000, 2,000 steps | seeds | learned | exact | random | span | CPU s |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|")
    for (name, kind), some in worlds.items():
        seen = [
            " ".join(f"{x:.0f}" for x in np.mean([line[who] for line in some], axis=0))
            for who in ("learned", "exact", "random")
        ]
        span, spent = (np.mean([line[what] for line in some]) for what in ("span", "discovered"))
        states = some[0]["states"]
        print(
            f"| {name} ({states:,}), {kind} | {len(some)} | {' | '.join(seen)} | {span:.3f} | {spent:.1f} |"
        )


def _4(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _1(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def aims(lines: list[dict[str, Any]]) -> None:
    for kind in KINDS:
        found = [row for row in rows(lines, kind) if row["bound"] is not None]
        if not found:
            continue
        record.fact(f"{kind}: mean cosine over grids", float(np.mean([row["mean"] for row in found])), "")
        record.aim(
            f"{kind}: eigenvalue error, largest of a grid", max(r["error"] for r in found), most=0.03, unit=""
        )
        if kind == "xy":
            short = max(row["bound"] - row["mean"] for row in found)
            record.aim("xy: below the bound of the sample, at most", short, most=0.003, unit="")
        compared = [row for row in found if row["published"] is not None]
        wins = sum(row["of 11"] >= row["published"] for row in compared)
        record.fact(f"{kind}: grids at or above ALLO's published mean", wins, f"of {len(compared)}")


def main() -> int:
    # Which functions are not resolved is in the lines.
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="two small grids and few transitions, for the tests"
    )
    parser.add_argument(
        "--grids", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED), metavar="GRID"
    )
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, metavar="KIND")
    parser.add_argument(
        "--methods", nargs="+", default=["table", "vamp2", "allo"], choices=["table", "vamp2", "allo"]
    )
    parser.add_argument(
        "--full", action="store_true", help="10 seeds from xy and 3 from pixels, noise and ALLO on every grid"
    )
    parser.add_argument("--seeds", type=int, help="number of seeds; 5 for xy, 1 for pixels")
    parser.add_argument("--seconds", type=float, help="CPU seconds of training per run")
    parser.add_argument("--worlds", type=int, default=1, help="seeds of the worlds that are explored")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--out", type=Path, default=record.OUT / "deep.jsonl", help="file of the results")
    parser.add_argument("--table", action="store_true", help="print the results that are stored, run nothing")
    given = parser.parse_args()
    path = given.out
    if given.quick:
        given.grids, given.kinds, given.seeds, given.worlds = (
            ["GridRoom-4", "GridMaze-7"],
            ["xy", "pixel"],
            1,
            0,
        )
        given.seconds, given.workers, path = 0.3, 1, path.with_name("deep-quick.jsonl")
        path.unlink(missing_ok=True)
    if not given.table:
        carry_out(list(plan(given)), path, given.workers)
    lines = [line for line in stored(path).values() if line["transitions"] == TRANSITIONS]
    report(lines)
    aims(lines)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
