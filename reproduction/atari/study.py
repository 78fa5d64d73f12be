"""One game from start states to tables: collections of transitions, roll-outs and highlighted options (Section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenoptions.atari import Emulator, Ram, collect_ram
from eigenoptions.atari.emulator import Bytes
from eigenoptions.atari.slow import compute_slow_spectrum, find_lasting_bytes, play_randomly
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.incidence import Incidence, feature_spectrum, incidence_spectrum
from reproduction.atari.game_graph import GameGraph, explore_game, follow, plan
from reproduction.atari.games import get_game
from reproduction.atari.measures import AXES, FAR, Array, get_points, measure
from reproduction.atari.rollouts import Rollouts, roll_out_actions, roll_out_directions
from reproduction.atari.settings import Kinds, Study, Variant
from reproduction.atari.starts import Start, find_published_starts, find_starts
from reproduction.atari.statistics import compare_kinds, mean_agreement, share_of_reliable
from reproduction.lab import Data, Lab

# Columns that identify an option within a collection.
OPTION = ["kind", "basis", "direction", "sign"]
# Width of a bin of the histogram of heights, in units of position.
BIN = 8

Starts = tuple[Start, ...]


def run_study(lab: Lab, study: Study) -> Data:
    """Find starts, collect, roll out, compare: everything about one game that comes from the emulator.

    ``rollouts`` has one row per variant, collection, start and option; ``long`` the same of long roll-outs, with the
    frames spent at each height; ``highlights`` are options to show, and ``traces`` what these did.
    """
    jobs: list[dict[str, Any]] = [
        {"game": study.game, "n": study.n_starts, "bursts": study.bursts, "rng": seed} for seed in study.seeds
    ]
    starts = dict(zip(study.seeds, map(tuple, lab.pmap(find_starts, jobs)), strict=True))
    jobs = []
    for variant in sorted(study.variants, key=lambda variant: -variant.frames):
        for seed in variant.seeds or study.seeds:
            collection = make_job(study, variant, seed, starts[seed])
            numbers = list(range(1 if variant.long else min(variant.n_starts, len(collection["starts"]))))
            # One game graph serves all starts.
            parts = [numbers] if variant.graph_states else [[number] for number in numbers]
            jobs += [{**collection, "numbers": part} for part in parts]
    tables, sizes = zip(*lab.pmap(roll_out_kinds, jobs), strict=True)
    data: Data = {}
    order = [variant.name for variant in study.variants]
    for name, is_long in (("rollouts", False), ("long", True)):
        parts = [table for job, table in zip(jobs, tables, strict=True) if job["variant"].long == is_long]
        if parts:
            table = pd.concat(parts).sort_values("variant", key=lambda v: v.map(order.index), kind="stable")
            data[name] = table.reset_index(drop=True)
    data["starts"] = pd.DataFrame(
        {"collection": seed, "start": i, "position": " ".join(map(str, s.position)), "actions": s.to_text()}
        for seed, group in starts.items()
        for i, s in enumerate(group)
    )
    data["collections"] = pd.DataFrame(sizes).drop_duplicates()
    data |= summarize(data["rollouts"])
    data["highlights"] = choose_highlights(data, Emulator(study.game).actions)
    data["traces"] = trace_highlights(lab, study, data["highlights"], starts[study.seeds[0]])
    return data


def make_job(study: Study, variant: Variant, seed: int, starts: Starts) -> dict[str, Any]:
    """Arguments of a job on one collection; other variants do not change it."""
    if variant.published_starts:
        starts = tuple(find_published_starts(study.game))
    return {
        "study": replace(study, variants=(), seeds=()),
        "variant": variant,
        "seed": seed,
        "starts": starts,
    }


def roll_out_kinds(
    study: Study, variant: Variant, seed: int, starts: Starts, numbers: Sequence[int]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Roll out options of all kinds of a variant from some of the starts, and measure each; and sizes of T."""
    collection = load_collection(study, variant, seed, starts)
    options = _list_options(variant.kinds, _get_emulator(study.game).n_actions, collection)
    game, tables = get_game(study.game), []
    for number in numbers:
        for part, log in _roll_out(study, variant, collection, starts, number, options):
            table = part.reset_index(drop=True).join(measure(log, starts[number].position, game))
            if variant.long:
                for low in range(0, 256, BIN):
                    heights = log.watched[:, :, -1]
                    played = np.arange(variant.frames) < log.length[:, None]
                    table[f"at {low}"] = ((heights >= low) & (heights < low + BIN) & played).sum(axis=1)
            tables.append(table.assign(start=number))
    keys = {"variant": variant.name, "collection": seed}
    joined = pd.concat(tables, ignore_index=True).assign(**keys, frames=variant.frames)
    first, changed = [*keys, "frames", "start"], collection.changed
    sizes = {**keys, "features": len(changed), "active": int(changed.sum()), "rank": collection.rank}
    return joined[[*first, *joined.columns.drop(first)]], sizes


def trace_options(
    study: Study, variant: Variant, seed: int, starts: Starts, number: int, options: pd.DataFrame
) -> pd.DataFrame:
    """Of each option, from one start, its action and the player's position frame by frame."""
    collection, traces = load_collection(study, variant, seed, starts), []
    for part, log in _roll_out(study, variant, collection, starts, number, options):
        for row, label in enumerate(part.label):
            frames = np.arange(log.length[row])
            columns = {
                axis: log.watched[row, frames, i] for i, axis in enumerate(AXES[: log.watched.shape[2]])
            }
            columns = {"label": label, "frame": frames, "action": log.actions[row, frames], **columns}
            traces.append(pd.DataFrame(columns))
    return pd.concat(traces)


def _roll_out(
    study: Study, variant: Variant, collection: Collection, starts: Starts, number: int, options: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, Rollouts]]:
    """Roll-outs of options from one start, in as few calls as possible."""
    emulator, start, frames = _get_emulator(study.game), starts[number], variant.frames
    emulator.replay(start.actions)
    state, features = emulator.save(), collection.features
    rules: dict[str, Any] = {"one_life": study.one_life, "watch": start.watch}
    blind = options.kind.isin(["constant", "walk"])
    if blind.any():
        actions = [
            np.full(frames, option.direction)
            if option.kind == "constant"
            else np.random.default_rng([collection.seed, number, option.direction]).integers(
                emulator.n_actions, size=frames
            )
            for option in options[blind].itertuples()
        ]
        yield options[blind], roll_out_actions(emulator, state, np.stack(actions), **rules)
    for published in (False, True):
        part = options[~blind & ((options.kind == "published") == published)]
        if part.empty:
            continue
        e = np.stack(
            [o.sign * collection.make_basis(o.kind, o.basis)[o.direction] for o in part.itertuples()]
        )
        if variant.graph_states:
            graph = _explore_game(study.game, starts, variant.frame_skip, variant.graph_states)
            yield part, follow(emulator, state, graph, plan(graph, e, features), frames, **rules)
        else:
            rules |= {"frame_skip": variant.frame_skip, "published": published}
            yield part, roll_out_directions(emulator, state, e, features, frames, **rules)


def _list_options(kinds: Kinds, n_actions: int, collection: Collection) -> pd.DataFrame:
    """The options of some kinds, one per row."""
    rows: list[tuple[Any, ...]] = []
    for kind, how in kinds.items():
        if kind in ("constant", "walk"):
            rows += product([kind], [0], range(n_actions if kind == "constant" else how["n"]), [1])
        else:
            numbers = collection.choose_numbers(kind, how["n"], how.get("end"))
            signs = (1,) if kind in ("rows", "published") else (1, -1)
            rows += product([kind], range(how.get("bases", 1)), numbers, signs)
    return pd.DataFrame(rows, columns=OPTION)


@dataclass(frozen=True, eq=False)
class Collection:
    """Directions from transitions of one game."""

    features: Ram
    spectrum: Spectrum
    seed: int  # of the random bases
    slow: bool = False  # slow features have variance 1 instead of length 1; random directions then too

    @property
    def rank(self) -> int:
        """Number of directions in which transitions went."""
        return len(self.spectrum.values) - self.spectrum.n_zero

    @property
    def changed(self) -> NDArray[np.bool_]:
        """``(d,)`` which features ever changed."""
        changed: NDArray[np.bool_] = np.abs(self.spectrum.vectors).max(axis=1) > 0
        return changed

    def choose_numbers(self, kind: str, n: int | None = None, end: str | None = None) -> list[int]:
        """Numbers of n directions of a kind, evenly spaced among all; None: all of them.

        Singular directions are numbered as in the paper, from 0, the largest singular value first; with an `end`,
        ``"small"`` or ``"large"``, the result holds the last or the first ones.
        """
        last = len(self.spectrum.vectors) if kind in ("rows", "published") else self.rank
        if n is None or n >= last:
            return list(range(last))
        # Any random directions are as good as others.
        if kind in ("random", "rotated") or end == "large":
            return list(range(n))
        if end == "small":
            return list(range(last - n, last))
        return [int(i) for i in np.linspace(0, last - 1, n).round()]

    @lru_cache(maxsize=24)  # noqa: B019 (a worker has few collections)
    def make_basis(self, kind: str, basis: int = 0) -> Array:
        """``(m, d)`` the directions of one kind."""
        vectors = self.spectrum.vectors
        singular: Array = vectors[:, self.spectrum.n_zero :][:, ::-1].T
        if kind == "singular":
            return singular
        if kind in ("rows", "published"):
            # ``U, s, V = np.linalg.svd(T)`` gives V transposed; the published program transposes it again and takes
            # row i, so that entry j of a direction belongs to singular value j instead of bit j.
            return np.concatenate([vectors[:, ::-1], np.eye(len(vectors))[:, ~self.changed]], axis=1)
        rng = np.random.default_rng([self.seed, basis])
        if kind == "rotated" or self.slow:
            return draw_orthonormal(self.rank, self.rank, rng) @ singular[::-1]
        directions = np.zeros((self.rank, len(vectors)))
        directions[:, self.changed] = draw_orthonormal(self.rank, int(self.changed.sum()), rng)
        return directions


def draw_orthonormal(k: int, d: int, rng: np.random.Generator) -> Array:
    """``(k, d)`` orthonormal rows, uniform: QR of a Gaussian matrix, with signs that remove its bias."""
    q, r = np.linalg.qr(rng.standard_normal((d, k)))
    rows: Array = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
    return rows


def load_collection(study: Study, variant: Variant, seed: int, starts: Starts) -> Collection:
    """The collection from which the options of a variant come."""
    return _collect(study, seed, starts, variant.code, variant.frame_skip, variant.lasting, variant.slow)


@lru_cache(maxsize=2)
def _collect(
    study: Study, seed: int, starts: Starts, code: str, frame_skip: int, lasting: bool, slow: bool
) -> Collection:
    """With a frame skip of 1, the paper's protocol; else random play in which each decision is one transition."""
    if frame_skip == 1:
        features = Ram(code)
        how: dict[str, Any] = {"max_episode_frames": study.max_episode_frames, "rng": seed}
        actions = [start.actions for start in starts]
        sampled = collect_ram(study.game, actions, study.transitions, features=features, **how)
        return Collection(features, feature_spectrum(sampled, features, whiten=False), seed)
    episodes, addresses = _play(study.game, seed, starts, frame_skip, max(study.transitions * 9 // 25, 200))
    # All bytes in a game in which the influence of no action lasts.
    features = Ram(code, (addresses or None) if lasting else None)
    if slow:
        return Collection(features, compute_slow_spectrum(episodes, features), seed, slow=True)
    T = Incidence()
    for ram in episodes:
        phi = features(ram)
        T.add(phi[:-1], phi[1:])
    return Collection(features, incidence_spectrum(T.rows, features=features), seed)


@lru_cache(maxsize=3)
def _play(
    game: str, seed: int, starts: Starts, frame_skip: int, n_decisions: int
) -> tuple[list[Bytes], tuple[int, ...]]:
    """Episodes of random play and bytes of lasting influence, which serve several variants of one seed."""
    emulator, rng = Emulator(game), np.random.default_rng([seed, frame_skip])
    episodes, states = play_randomly(emulator, [s.actions for s in starts], frame_skip, n_decisions, rng)
    return episodes, find_lasting_bytes(emulator, states)


@lru_cache(maxsize=2)
def _explore_game(game: str, starts: Starts, frame_skip: int, max_states: int) -> GameGraph:
    return explore_game(game, starts, frame_skip=frame_skip, max_states=max_states)


@lru_cache(maxsize=1)
def _get_emulator(game: str) -> Emulator:
    return Emulator(game)


def summarize(rollouts: pd.DataFrame) -> Data:
    """Means by kind; effects of singular directions against other kinds; agreement of each kind; and all groups."""
    tables: dict[str, list[pd.DataFrame]] = {}
    for variant, table in rollouts.groupby("variant", sort=False):
        parts = {
            "means": table.groupby("kind", sort=False).mean(numeric_only=True).reset_index(),
            "effects": _compare_all(table),
            "levels": _agreement_by_kind(table),
        }
        for name, part in parts.items():
            part.insert(0, "variant", variant)
            tables.setdefault(name, []).append(part)
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def _compare_all(table: pd.DataFrame) -> pd.DataFrame:
    """Effects of singular directions against other kinds."""
    compared = [("random", m) for m in ("arrives", "agreement", "reach", "dwell")]
    compared += [("rotated", "arrives"), ("rotated", "agreement"), ("walk", "dwell")]
    kinds = set(table.kind)
    return pd.DataFrame(
        {"against": other, "measure": name, **asdict(compare_kinds(table, name, other=other, n_intervals=2))}
        for other, name in compared
        if {"singular", other} <= kinds
    )


def _agreement_by_kind(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for kind, part in table.groupby("kind", sort=False):
        if kind not in ("walk", "rows"):
            level, (reliable, n_options) = mean_agreement(part), share_of_reliable(part)
            ends = {"agreement": level.mean, "low": level.low, "high": level.high}
            rows.append({"kind": kind, **ends, "options": n_options, "reliable": reliable})
    return pd.DataFrame(rows)


def choose_highlights(
    data: Data, action_names: Sequence[str], n: int = 6, n_last: int = 4, min_distance: float = 24.0
) -> pd.DataFrame:
    """The options of the first collection that figures and clips show, chosen by rule.

    Candidates are singular options that arrive somewhere, in order of the number of starts from which they settle near
    that place, of dwell, and of their number. One whose place is nearer than `min_distance` to one taken before is
    skipped. If they are fewer than n, those of largest dwell times distance follow. They are of the first variant;
    `n_last` of the last one are chosen likewise. The best row of V by the published program, the best constant action
    and a random walk follow for comparison.
    """
    rollouts = data["rollouts"]
    variants = list(rollouts.variant.unique())
    first = rollouts[rollouts.collection == rollouts.collection.iloc[0]]
    parts = []
    for variant, number in {variants[-1]: n_last, variants[0]: n}.items():
        table = first[(first.variant == variant) & (first.kind == "singular")]
        parts.insert(0, _choose_apart(table, number, min_distance))
    others = data.get("long", rollouts)
    others = others[(others.variant == variants[0]) & (others.start == 0)]
    others = others[others.collection == first.collection.iloc[0]]
    for kind, reason in {
        "published": "best score of the published program",
        "constant": "best score of one action",
        "walk": "a random walk",
    }.items():
        table = others[others.kind == kind]
        if len(table):
            best = table.index[0] if kind == "walk" else table.score.idxmax()
            parts.append(table.loc[[best]].assign(reason=reason))
    chosen = pd.concat(parts, ignore_index=True)
    names = {"published": "row", "constant": "always", "walk": "walk"}
    labels = []
    for option in chosen.itertuples():
        number = action_names[option.direction] if option.kind == "constant" else option.direction
        sign = ("+" if option.sign > 0 else "-") + " best" * (option.variant != variants[0])
        labels.append(f"#{number}{sign}" if option.kind == "singular" else f"{names[option.kind]} {number}")
    chosen.insert(0, "label", labels)
    columns = ["label", "variant", *OPTION, "start", "dwell", "away", "region", "score", "reason"]
    return chosen[columns]


def _choose_apart(table: pd.DataFrame, n: int, min_distance: float) -> pd.DataFrame:
    """Up to n singular options of one variant, at places apart from each other."""
    points = get_points(table)
    names = table.direction.to_numpy() * 2 + (table.sign.to_numpy() > 0)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < FAR
    support = ((names[:, None] == names) & near & (table.settles.to_numpy() > 0)).sum(axis=1)
    dwell, away, direction = (table[name].to_numpy() for name in ("dwell", "away", "direction"))
    sure = [i for i in np.lexsort((direction, -dwell, -support)) if table.arrives.iloc[i]]
    rest = [i for i in np.lexsort((direction, -np.nan_to_num(dwell * away))) if away[i] >= FAR]
    taken: dict[int, int] = {}
    reasons = []
    for number, i in enumerate([*sure, *rest]):
        apart = all(np.linalg.norm(points[i] - points[j]) >= min_distance for j in taken.values())
        if len(taken) < n and names[i] not in taken and apart:
            taken[names[i]] = i
            settles = f"settles here from {support[i]} of {table.start.nunique()} starts"
            reasons.append(settles if number < len(sure) else "does not settle; large dwell times distance")
    return table.iloc[list(taken.values())].assign(reason=reasons)


def trace_highlights(lab: Lab, study: Study, highlights: pd.DataFrame, starts: Starts) -> pd.DataFrame:
    """What the highlighted options of the first collection did, frame by frame."""
    variants = {variant.name: variant for variant in study.variants if not variant.long}
    jobs = []
    for (name, number), options in highlights.groupby(["variant", "start"]):
        job = make_job(study, variants[name], study.seeds[0], starts)
        jobs.append({**job, "number": number, "options": options[["label", *OPTION]]})
    return pd.concat(lab.pmap(trace_options, jobs), ignore_index=True)
