"""Jobs of the Atari experiments: plain settings in, a few numbers an option out (paper, Section 5.2, Appendix E).

What is followed in a roll-out has a *kind*:

========= ============================================================================================================
singular  right singular vectors of T, non-zero values only, both signs; `many` evenly spaced ones, or all (None)
random    `bases` of random orthonormal directions on the features that ever changed, `many` of each, both signs
rotated   the same, but within the span of the singular vectors: another basis of where transitions went
rows      rows of V instead of its columns, as the published program takes them; `many` of all features, one sign
published the same with its other fault, rewards against what the last action tried led to, and no tolerance
constant  each action held all the time
walk      `many` uniformly random walks
========= ============================================================================================================

A *variant* says what is coded and how it is followed; `PAPER` is the paper's way, with the published program's answer
to what follows when no action is positive: nothing is done for a frame. With ``plan``, a number of states, options are
solved on a chart of the game (`atari.charts`) with ``gamma``, and followed in the emulator. Collections are made
again in each worker that needs them (they are a pure function of settings, and cost seconds), so that jobs stay plain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.atari.charts import Chart, chart, follow, plan
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.games import known
from eigenoptions.atari.lockstep import lockstep
from eigenoptions.atari.rollouts import Rollouts, Rules, play
from eigenoptions.atari.starts import Start, find_starts
from eigenoptions.experiments.atari.collections import Collection, collection
from eigenoptions.experiments.atari.measures import KINDS, OPTION, histogram, joined, measure
from eigenoptions.experiments.atari.published import published_rollouts

Job = Mapping[str, Any]
Option = dict[str, Any]
PAPER = {"name": "paper", "coding": {"code": "bits"}, "hold": 1, "depth": 1, "gamma": 0.0, "after": "noop"}
BLIND = ("constant", "walk")  # kinds that do not look at what actions do
BIN = 8  # units of position in a histogram


def starts(job: Job) -> list[dict[str, Any]]:
    """Start states of a game, as plain data: ``{"game", "starts", "seed", "bursts"}``."""
    found = find_starts(job["game"], job["starts"], rng=job["seed"], bursts=job["bursts"])
    return [start.plain() for start in found]


def rollouts(job: Job) -> dict[str, Any]:
    """Roll out options of several kinds from one start; of each, measures.

    Parameters
    ----------
    job
        ``game``, ``seed`` (of the collection), ``starts`` (plain, all of them), ``start`` (the number of one, or a
        list of numbers), ``transitions``, ``longest``, ``variant``, ``kinds`` (see the module), ``frames``, ``until``,
        and ``heights`` (whether to keep histograms).

    Returns
    -------
    dict
        ``table``: columns of keys and measures; ``heights``: ``(n, 32)`` frames at each value of the last coordinate,
        in bins of 8 units, or None; ``acts``: frames emulated; ``facts``: of the collection, or None.
    """
    held = collection_of(job)
    options = _options(job["kinds"], _emulator(job["game"]).n_actions, held)
    tables, heights, acts = [], [], 0
    several = job["start"] if isinstance(job["start"], list) else [job["start"]]
    for number in several:
        for part, rolled, start in _roll({**job, "start": number}, options, held):
            keys = {name: np.array([option[name] for option in part], dtype=float) for name in OPTION[1:]}
            keys["kind"] = np.array([KINDS.index(option["kind"]) for option in part], dtype=float)
            keys["start"] = np.full(len(part), float(number))
            tables.append({**keys, **measure(rolled, start.position, known(job["game"]).regions)})
            acts += rolled.acts
            if job.get("heights"):
                counts = histogram(rolled, axis=-1)
                heights.append(counts.reshape(len(counts), -1, BIN).sum(axis=2).astype(np.int32))
    return {
        "table": joined(tables),
        "heights": np.concatenate(heights) if heights else None,
        "acts": acts,
        "facts": None if held is None else held.facts(),
    }


def trace(job: Job) -> dict[str, Any]:
    """What given options did, frame by frame.

    Parameters
    ----------
    job
        As in `rollouts`, with ``options`` (each ``{"kind", "basis", "direction", "sign"}``) instead of ``kinds``.

    Returns
    -------
    dict
        ``actions (n, frames)`` int8 and ``positions (n, frames, p)`` uint8; -1 and 0 after the end.
    """
    options, found = list(job["options"]), {}
    for part, rolled, _ in _roll(job, options, collection_of(job)):
        for i, option in enumerate(part):
            found[_name(option)] = rolled.actions[i], rolled.watched[i]
    return {
        "actions": np.stack([found[_name(option)][0] for option in options]),
        "positions": np.stack([found[_name(option)][1] for option in options]),
    }


def _roll(
    job: Job, options: list[Option], held: Collection | None
) -> Iterator[tuple[list[Option], Rollouts, Start]]:
    """Roll-outs of options, those together that one lock step can serve."""
    variant, emulator = job["variant"], _emulator(job["game"])
    start = Start.again(job["game"], job["starts"][job["start"]])
    start.reach(emulator)
    state = emulator.save()
    blind = [option for option in options if option["kind"] in BLIND]
    if blind:
        actions = np.stack([_blindly(option, job, emulator.n_actions) for option in blind])
        yield blind, play(emulator, state, actions, until=job["until"], watch=start.watch), start
    for published in (False, True):
        part = [o for o in options if o["kind"] not in BLIND and (o["kind"] == "published") == published]
        if not part:
            continue
        assert held is not None
        vectors = np.stack([o["sign"] * held.direction(o["kind"], o["basis"], o["direction"]) for o in part])
        rules = Rules("noop", until=job["until"], watch=start.watch, rng=job["seed"])
        if variant.get("plan"):
            charted = _chart(json.dumps([job["game"], job["starts"], variant["hold"], variant["plan"]]))
            planned = plan(charted, vectors, held.coding, variant["gamma"])
            yield part, follow(emulator, state, charted, planned, job["frames"], rules), start
        else:
            rules = replace(rules, **{name: variant[name] for name in ("after", "hold", "depth", "gamma")})
            roll = published_rollouts if published else lockstep
            yield part, roll(emulator, state, vectors, held.coding, job["frames"], rules), start


@lru_cache(maxsize=1)
def _emulator(game: str) -> Emulator:
    return Emulator(game)


@lru_cache(maxsize=2)
def _chart(text: str) -> Chart:
    """The chart that a variant plans on."""
    game, starts, hold, limit = json.loads(text)
    return chart(game, [Start.again(game, plain) for plain in starts], hold=hold, limit=limit)


def collection_of(job: Job) -> Collection | None:
    """The collection that a job's options come from, if they come from one."""
    kinds = {option["kind"] for option in job["options"]} if "options" in job else {*job["kinds"]}
    if kinds <= {*BLIND}:
        return None
    given = {name: job[name] for name in ("game", "seed", "starts", "transitions", "longest")}
    given |= {name: job["variant"].get(name) for name in ("coding", "hold", "bytes", "slow")}
    return collection(json.dumps(given, sort_keys=True))


def _options(kinds: Job, n_actions: int, held: Collection | None) -> list[Option]:
    """Which options the kinds of a job are."""
    found: list[Option] = []
    for kind, how in kinds.items():
        if kind in BLIND:
            found += [_option(kind, 0, i, 1) for i in range(n_actions if kind == "constant" else how["many"])]
            continue
        assert held is not None
        signs = (1,) if kind in ("rows", "published") else (1, -1)
        for basis in range(how.get("bases", 1)):
            found += [
                _option(kind, basis, i, sign)
                for i in held.numbers(kind, how["many"], how.get("end"))
                for sign in signs
            ]
    return found


def _option(kind: str, basis: int, direction: int, sign: int) -> Option:
    return dict(zip(OPTION, (kind, basis, direction, sign), strict=True))


def _name(option: Option) -> tuple[Any, ...]:
    return tuple(option[name] for name in OPTION)


def _blindly(option: Option, job: Job, n_actions: int) -> NDArray[np.int8]:
    """``(frames,)`` actions of a constant or a walk."""
    if option["kind"] == "constant":
        return np.full(int(job["frames"]), option["direction"], dtype=np.int8)
    rng = np.random.default_rng([job["seed"], job["start"], option["direction"]])
    return rng.integers(n_actions, size=int(job["frames"])).astype(np.int8)
