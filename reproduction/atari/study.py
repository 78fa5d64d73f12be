"""The study of one game: collect transitions, roll out options, measure them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from eigenoptions._types import IndexArray
from eigenoptions.atari import Emulator
from reproduction.atari.collection import Collection, load_collection
from reproduction.atari.game_graph import plan_options
from reproduction.atari.games import get_game
from reproduction.atari.measures import AXES, OPTION, measure_prefixes
from reproduction.atari.pictures import choose_highlights
from reproduction.atari.rollouts import Choose, Node, Rollouts, look_ahead, roll_out
from reproduction.atari.settings import WHOLE_GAMES, Variant, make_variants
from reproduction.lab import Data, Job, Lab


def run_small_study(lab: Lab, game: str) -> Data:
    """The paper's protocol in a small run."""
    size = "quick" if lab.quick else "paper"
    return run_study(lab, game, make_variants(game, size))


def run_study(lab: Lab, game: str, variants: Sequence[Variant]) -> Data:
    """Everything about one game that comes from the emulator.

    ``rollouts`` has one row per variant, collection, start and option; ``long`` the
    same of long roll-outs; ``curves`` has what was reached after how many frames;
    ``highlights`` are options to show, and ``traces`` what
    these did, frame by frame.
    """
    long = [variant for variant in variants if variant.long]
    others = [variant for variant in variants if not variant.long]
    measured = lab.run(
        {
            "rollouts": list_rollout_jobs(game, others),
            "long": list_rollout_jobs(game, long),
        }
    )
    data: Data = {}
    for name, results in measured.items():
        if results:
            tables = [parts["rollouts"] for _, parts in results]
            data[name] = pd.concat(tables, ignore_index=True)
    # A long roll-out of Freeway is a whole game.
    curves = [parts["curves"] for _, parts in measured["rollouts"]]
    for _, parts in measured["long"]:
        is_of_paper = parts["curves"].variant == "paper"
        curves.append(parts["curves"][is_of_paper].assign(variant=WHOLE_GAMES))
    data["curves"] = pd.concat(curves, ignore_index=True)

    # What is shown depends on what was measured.
    data["highlights"] = choose_highlights(data["rollouts"])
    traced = lab.run({"traces": list_trace_jobs(game, others, data["highlights"])})
    traces = [table for _, table in traced["traces"]]
    data["traces"] = pd.concat(traces, ignore_index=True)
    return data


def list_rollout_jobs(game: str, variants: Sequence[Variant]) -> list[Job]:
    """One job per collection and start of each variant.

    Where options are planned, one game graph serves all starts, in one job.
    """
    jobs = []
    for variant in variants:
        starts = [0] if variant.long else list(range(variant.n_starts))
        parts = [[start] for start in starts]
        if variant.graph_states:
            parts = [starts]
        for seed in variant.collections:
            for part in parts:
                arguments = {
                    "game": game,
                    "variant": variant,
                    "seed": seed,
                    "starts": part,
                }
                jobs.append(Job(measure_options, arguments))
    return jobs


def list_trace_jobs(
    game: str, variants: Sequence[Variant], highlights: pd.DataFrame
) -> list[Job]:
    """One job per variant, collection and start with highlighted options."""
    by_name = {variant.name: variant for variant in variants}
    jobs = []
    groups = highlights.groupby(["variant", "collection", "start"])
    for (name, seed, start), options in groups:
        arguments = {
            "game": game,
            "variant": by_name[name],
            "seed": seed,
            "start": start,
            "options": options,
        }
        jobs.append(Job(trace_options, arguments))
    return jobs


def measure_options(
    game: str, variant: Variant, seed: int, starts: Sequence[int]
) -> Data:
    """Roll out options of all kinds of a variant from some starts; measure each.

    Besides the ``rollouts`` there are ``curves``: how many options have settled and
    arrived, and in which regions, after each tenth of the frames.
    """
    collection = load_collection(game, variant, seed)
    options = list_options(collection)
    tables = []
    curves = []
    for start in starts:
        keys = {
            "variant": variant.name,
            "collection": seed,
            "rank": collection.rank,
            "frames": variant.frames,
            "start": start,
        }
        for part, log in roll_out_options(collection, start, options):
            part = part.reset_index(drop=True)
            for frames, measures in measure_prefixes(log, get_game(game)):
                table = part.join(measures)
                curve = summarize_arrivals(table)
                columns = keys | {"frames": frames}
                curves.append(pd.DataFrame(columns, index=curve.index).join(curve))
            tables.append(pd.DataFrame(keys, index=table.index).join(table))
    return {
        "rollouts": pd.concat(tables, ignore_index=True),
        "curves": pd.concat(curves, ignore_index=True),
    }


def summarize_arrivals(table: pd.DataFrame) -> pd.DataFrame:
    """How many options of each kind settle and arrive, and the regions they arrive at.

    >>> moves = pd.DataFrame({"kind": ["walk"] * 2, "settles": [1.0, 1.0]})
    >>> moves = moves.assign(arrives=[1.0, 0.0], region=["rope", "key"])
    >>> summarize_arrivals(moves).to_dict("records")
    [{'kind': 'walk', 'n': 2, 'settles': 1.0, 'arrives': 0.5, 'regions': 'rope'}]
    """
    rows = []
    for kind, part in table.groupby("kind", sort=False):
        regions = set(part.region[part.arrives > 0]) - {""}
        row = {
            "kind": kind,
            "n": len(part),
            "settles": part.settles.mean(),
            "arrives": part.arrives.mean(),
            "regions": ";".join(sorted(regions)),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def list_options(collection: Collection) -> pd.DataFrame:
    """One row per option of a collection, with the columns that identify it."""
    rows = []
    for kind in collection.variant.kinds:
        has_signs = kind.name in ("singular", "random")
        signs = (1, -1) if has_signs else (1,)
        directions = collection.choose_numbers(kind)
        rows += [
            (kind.name, basis, direction, sign)
            for basis in range(kind.bases)
            for direction in directions
            for sign in signs
        ]
    return pd.DataFrame(rows, columns=OPTION)


def trace_options(
    game: str, variant: Variant, seed: int, start: int, options: pd.DataFrame
) -> pd.DataFrame:
    """The action and the player's position of each option, frame by frame."""
    collection = load_collection(game, variant, seed)
    traces = []
    for part, log in roll_out_options(collection, start, options):
        for i, label in enumerate(part.label):
            frames = np.arange(log.length[i])
            trace = {
                "label": label,
                "frame": frames,
                "action": log.actions[i, frames],
            }
            trace |= zip(AXES, log.watched[i, frames].T, strict=False)
            traces.append(pd.DataFrame(trace))
    return pd.concat(traces)


def roll_out_options(
    collection: Collection, start: int, options: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, Rollouts]]:
    """Roll-outs of options from one start, in as few calls as possible."""
    variant = collection.variant
    emulator = Emulator(collection.game)
    watch = get_game(collection.game).position

    # Kinds that are rolled out together; all others follow directions.
    calls = {"constant": "actions", "walk": "actions", "published": "published"}
    together = options.groupby(options.kind.map(calls).fillna("directions"))
    for call, part in together:
        frame_skip = variant.frame_skip
        if call == "actions":
            choose = follow_actions(collection, start, part, emulator.n_actions)
            frame_skip = 1
        else:
            rule = "published" if call == "published" else variant.rule
            choose = follow_directions(collection, part, rule=rule)
        emulator.replay(collection.starts[start])
        log = roll_out(
            emulator,
            len(part),
            choose,
            variant.frames,
            watch,
            frame_skip,
            one_life=variant.one_life,
        )
        yield part, log


def follow_actions(
    collection: Collection, start: int, options: pd.DataFrame, n_actions: int
) -> Choose:
    """Random walks, and options that take one action all the time."""
    n_frames = collection.variant.frames
    rows = []
    for option in options.itertuples():
        if option.kind == "walk":
            rng = np.random.default_rng([collection.seed, start, option.direction])
            rows.append(rng.integers(n_actions, size=n_frames))
        else:
            rows.append(np.full(n_frames, option.direction))
    actions: IndexArray = np.stack(rows).astype(np.intp)

    def choose(
        nodes: list[Node], at: IndexArray, running: IndexArray, frame: int
    ) -> IndexArray:
        chosen: IndexArray = actions[running, frame]
        return chosen

    return choose


def follow_directions(
    collection: Collection, options: pd.DataFrame, *, rule: str
) -> Choose:
    """Options that follow directions, by looking one step ahead or by planning."""
    directions = []
    for option in options.itertuples():
        basis = collection.make_basis(option.kind, option.basis)
        directions.append(option.sign * basis[option.direction])

    if collection.variant.graph_states:
        return plan_options(directions, collection.features, collection.graph)
    return look_ahead(directions, collection.features, rule=rule)
