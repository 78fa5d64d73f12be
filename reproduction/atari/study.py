"""One game from start states to tables: collections of transitions, roll-outs and highlighted options (Section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenoptions.atari import Emulator, Ram, collect_ram
from eigenoptions.atari.emulator import Bytes
from eigenoptions.atari.slow import lasting_bytes, play_randomly, slow_spectrum
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.incidence import feature_spectrum
from reproduction.atari.game_graph import GameGraph, explore_game, follow, plan
from reproduction.atari.games import get_game
from reproduction.atari.measures import AXES, FAR, Array, get_points, measure
from reproduction.atari.rollouts import Rollouts, roll_out_actions, roll_out_directions
from reproduction.atari.settings import Study, Variant
from reproduction.atari.starts import Start, find_published_starts, find_starts
from reproduction.atari.statistics import compare_kinds, mean_agreement, share_of_reliable, summarize_groups
from reproduction.lab import Data, Lab

# Columns that identify an option within a collection.
OPTION = ["kind", "basis", "direction", "sign"]
# Width of a bin of the histogram of heights, in units of position.
BIN = 8

Starts = tuple[Start, ...]


def run_study(lab: Lab, study: Study) -> Data:
    """Find starts, collect, roll out, compare: everything about one game that comes from the emulator.

    Returns
    -------
    dict of data frames
        ``rollouts``: one row per variant, collection, start and option, with its measures; ``long`` the same of long
        roll-outs, with the frames spent at each height (Freeway only); ``starts``; ``collections``: sizes; the summaries
        of `summarize`; ``highlights``: options to show; and ``traces``: what these did.
    """
    game = study.game
    jobs = [{"game": game, "n": study.n_starts, "bursts": study.bursts, "rng": seed} for seed in study.seeds]
    found = dict(zip(study.seeds, map(tuple, lab.pmap(find_starts, jobs)), strict=True))
    jobs = list(_make_jobs(study, found))
    # The longest first.
    jobs.sort(key=lambda job: not job["variant"].long)
    tables = lab.pmap(roll_out_kinds, jobs)
    order = [variant.name for variant in study.variants]
    pairs = list(zip(jobs, tables, strict=True))
    data: Data = {}
    for name, is_long in (("rollouts", False), ("long", True)):
        parts = [table for job, table in pairs if job["variant"].long == is_long]
        if parts:
            joined = pd.concat(parts, ignore_index=True)
            data[name] = joined.sort_values("variant", key=lambda v: v.map(order.index), kind="stable")
    data["starts"] = pd.DataFrame(
        {
            "collection": seed,
            "start": i,
            "position": " ".join(map(str, start.position)),
            "actions": start.to_text(),
        }
        for seed, starts in found.items()
        for i, start in enumerate(starts)
    )
    data["collections"] = _count_features(lab, jobs)
    data |= summarize(data["rollouts"])
    data["highlights"] = choose_highlights(data, Emulator(game).actions)
    data["traces"] = trace_highlights(lab, study, data["highlights"], found)
    return data


def _make_jobs(study: Study, found: Mapping[int, Starts]) -> Iterator[dict[str, Any]]:
    """Jobs of `roll_out_kinds`."""
    for variant in study.variants:
        for seed in variant.seeds or study.seeds:
            starts = _choose_starts(study, variant, found[seed])
            numbers = range(1 if variant.long else min(variant.n_starts, len(starts)))
            # One game graph serves all starts.
            for chosen in [list(numbers)] if variant.graph_states else [[number] for number in numbers]:
                yield {**_job(study), "variant": variant, "seed": seed, "starts": starts, "numbers": chosen}


def _job(study: Study) -> dict[str, Any]:
    names = ("game", "transitions", "max_episode_frames", "one_life")
    return {name: getattr(study, name) for name in names}


def _choose_starts(study: Study, variant: Variant, own: Starts) -> Starts:
    return tuple(find_published_starts(study.game)) if variant.published_starts else own


def roll_out_kinds(
    game: str,
    variant: Variant,
    seed: int,
    starts: Starts,
    numbers: Sequence[int],
    transitions: int,
    max_episode_frames: int,
    one_life: bool,
) -> pd.DataFrame:
    """Roll out options of all kinds of a variant from some of the starts, and measure each."""
    collection = load_collection(game, variant, seed, starts, transitions, max_episode_frames)
    options = _list_options(variant.kinds, _get_emulator(game).n_actions, collection)
    tables = []
    for number in numbers:
        for part, log in _roll_out(game, variant, seed, starts, number, collection, options, one_life):
            table = pd.concat(
                [part.reset_index(drop=True), measure(log, starts[number].position, get_game(game))], axis=1
            )
            if variant.long:
                heights = [
                    np.bincount(log.watched[i, : log.length[i], -1], minlength=256)
                    .reshape(-1, BIN)
                    .sum(axis=1)
                    for i in range(len(part))
                ]
                names = [f"at {BIN * i}" for i in range(256 // BIN)]
                table = pd.concat([table, pd.DataFrame(heights, columns=names)], axis=1)
            table.insert(0, "start", number)
            tables.append(table)
    joined = pd.concat(tables, ignore_index=True)
    joined.insert(0, "variant", variant.name)
    joined.insert(1, "collection", seed)
    joined.insert(2, "frames", variant.frames)
    return joined


def trace_options(
    game: str,
    variant: Variant,
    seed: int,
    starts: Starts,
    number: int,
    transitions: int,
    max_episode_frames: int,
    one_life: bool,
    options: pd.DataFrame,
) -> list[pd.DataFrame]:
    """Of each option, from one start, its action and the player's position frame by frame."""
    collection = load_collection(game, variant, seed, starts, transitions, max_episode_frames)
    traces = {}
    for part, log in _roll_out(game, variant, seed, starts, number, collection, options, one_life):
        for row, index in enumerate(part.index):
            length = log.length[row]
            positions = log.watched[row, :length]
            columns = {axis: positions[:, i] for i, axis in enumerate(AXES[: positions.shape[1]])}
            traces[index] = pd.DataFrame(
                {"frame": np.arange(length), "action": log.actions[row, :length], **columns}
            )
    return [traces[index] for index in options.index]


def _roll_out(
    game: str,
    variant: Variant,
    seed: int,
    starts: Starts,
    number: int,
    collection: Collection,
    options: pd.DataFrame,
    one_life: bool,
) -> Iterator[tuple[pd.DataFrame, Rollouts]]:
    """Roll-outs of options from one start, in as few calls as possible."""
    emulator, start, frames = _get_emulator(game), starts[number], variant.frames
    emulator.replay(start.actions)
    state = emulator.save()
    rules: dict[str, Any] = {"one_life": one_life, "watch": start.watch}
    blind = options[options.kind.isin(["constant", "walk"])]
    if len(blind):
        actions = [
            np.full(frames, option.direction)
            if option.kind == "constant"
            else np.random.default_rng([seed, number, option.direction]).integers(
                emulator.n_actions, size=frames
            )
            for option in blind.itertuples()
        ]
        yield blind, roll_out_actions(emulator, state, np.stack(actions), **rules)
    for published in (False, True):
        part = options.drop(blind.index)
        part = part[(part.kind == "published") == published]
        if part.empty:
            continue
        vectors = [o.sign * collection.make_basis(o.kind, o.basis)[o.direction] for o in part.itertuples()]
        e, features = np.stack(vectors), collection.features
        if variant.graph_states:
            graph = _explore_game(game, starts, variant.frame_skip, variant.graph_states)
            yield part, follow(emulator, state, graph, plan(graph, e, features), frames, **rules)
        else:
            rules["frame_skip"] = variant.frame_skip
            yield (
                part,
                roll_out_directions(emulator, state, e, features, frames, published=published, **rules),
            )


def _list_options(kinds: Any, n_actions: int, collection: Collection) -> pd.DataFrame:
    """The options of some kinds, one per row."""
    rows: list[tuple[Any, ...]] = []
    for kind, how in kinds.items():
        if kind in ("constant", "walk"):
            rows += product([kind], [0], range(n_actions if kind == "constant" else how["n"]), [1])
        else:
            numbers = collection.choose_numbers(kind, how["n"], how.get("end"))
            rows += product(
                [kind],
                range(how.get("bases", 1)),
                numbers,
                (1,) if kind in ("rows", "published") else (1, -1),
            )
    return pd.DataFrame(rows, columns=OPTION)


@dataclass(frozen=True, eq=False)
class Collection:
    """Directions from transitions of one game and seed.

    Attributes
    ----------
    features, spectrum
        The feature map phi, and all eigenvectors of T'T.
    seed
        Seed of the random bases.
    slow
        Whether directions are slow features, scaled to variance 1 instead of length 1; random ones are then too.
    """

    features: Ram
    spectrum: Spectrum
    seed: int
    slow: bool = False

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

    @cache  # noqa: B019 (there are few collections, and each keeps its bases)
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


def load_collection(
    game: str, variant: Variant, seed: int, starts: Starts, transitions: int, max_episode_frames: int
) -> Collection:
    """The collection from which the options of a variant come."""
    how = (variant.code, variant.frame_skip, variant.lasting, variant.slow)
    return _collect(game, seed, starts, transitions, max_episode_frames, *how)


@lru_cache(maxsize=2)
def _collect(
    game: str,
    seed: int,
    starts: Starts,
    transitions: int,
    max_episode_frames: int,
    code: str,
    frame_skip: int,
    lasting: bool,
    slow: bool,
) -> Collection:
    """With a frame skip of 1, the paper's protocol; else random play in which each decision is one transition."""
    actions = [start.actions for start in starts]
    if frame_skip == 1:
        features = Ram(code)
        how: dict[str, Any] = {"features": features, "max_episode_frames": max_episode_frames, "rng": seed}
        sampled = collect_ram(game, actions, transitions, **how)
        return Collection(features, feature_spectrum(sampled, features, whiten=False), seed)
    episodes, addresses = _play(game, seed, starts, frame_skip, max(transitions * 9_000 // 25_000, 200))
    # All bytes in a game in which the influence of no action lasts.
    features = Ram(code, (addresses or None) if lasting else None)
    if slow:
        return Collection(features, slow_spectrum(episodes, features), seed, slow=True)
    before, after = (np.concatenate([ram[part] for ram in episodes]) for part in (slice(-1), slice(1, None)))
    nothing = np.zeros(len(before), dtype=np.int64)
    return Collection(features, feature_spectrum((before, nothing, after), features, whiten=False), seed)


@lru_cache(maxsize=3)
def _play(
    game: str, seed: int, starts: Starts, frame_skip: int, n_decisions: int
) -> tuple[list[Bytes], tuple[int, ...]]:
    """Episodes of random play and bytes of lasting influence, which serve several variants of one seed."""
    emulator, rng = Emulator(game), np.random.default_rng([seed, frame_skip])
    episodes, states = play_randomly(emulator, [s.actions for s in starts], frame_skip, n_decisions, rng)
    return episodes, lasting_bytes(emulator, states)


@lru_cache(maxsize=2)
def _explore_game(game: str, starts: Starts, frame_skip: int, max_states: int) -> GameGraph:
    return explore_game(game, starts, frame_skip=frame_skip, max_states=max_states)


@lru_cache(maxsize=1)
def _get_emulator(game: str) -> Emulator:
    return Emulator(game)


def describe_collection(
    game: str, variant: Variant, seed: int, starts: Starts, transitions: int, max_episode_frames: int
) -> dict[str, Any]:
    """Number of features, of those that ever changed, and rank of T."""
    collection = load_collection(game, variant, seed, starts, transitions, max_episode_frames)
    sizes = {
        "features": len(collection.changed),
        "active": int(collection.changed.sum()),
        "rank": collection.rank,
    }
    return {"variant": variant.name, "collection": seed, **sizes}


def _count_features(lab: Lab, jobs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    names = ("game", "variant", "seed", "starts", "transitions", "max_episode_frames")
    different = {(job["variant"].name, job["seed"]): {name: job[name] for name in names} for job in jobs}
    return pd.DataFrame(lab.pmap(describe_collection, different.values()))


def summarize(rollouts: pd.DataFrame) -> Data:
    """Means by kind; effects of singular directions against other kinds; agreement of each kind; and all groups."""
    tables: dict[str, list[pd.DataFrame]] = {"means": [], "effects": [], "levels": [], "groups": []}
    for variant, table in rollouts.groupby("variant", sort=False):
        numbers = table.drop(
            columns=["variant", "collection", "start", *OPTION, "region", *AXES], errors="ignore"
        )
        means = numbers.groupby(table.kind, sort=False).mean()
        means.insert(0, "rollouts", table.groupby("kind", sort=False).size())
        parts = {"means": means.reset_index()}
        if "x" in table:
            parts |= {
                "effects": _compare_all(table),
                "levels": _agreement_by_kind(table),
                "groups": summarize_groups(table),
            }
        for name, part in parts.items():
            part.insert(0, "variant", variant)
            tables[name].append(part)
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items() if parts}


def _compare_all(table: pd.DataFrame) -> pd.DataFrame:
    """Effects of singular directions against other kinds."""
    compared = [("random", m) for m in ("arrives", "agreement", "reach", "dwell", "died", "score")]
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

    Candidates are singular options that arrive somewhere. They are taken in order of the number of starts from which
    they settle near that place, then of dwell, then of their number. One that was taken from another start, or whose
    place is nearer than `min_distance` to that of one taken before, is skipped. If they are fewer than n, the options of
    largest dwell times distance follow, by the same rule. They are of the first variant; `n_last` of the last variant,
    if there are others, are chosen likewise. For comparison, the best-scoring row of V by the published program, the
    best-scoring constant action (of the long roll-outs, where there are any) and a random walk follow.
    """
    rollouts = data["rollouts"]
    variants = list(rollouts.variant.unique())
    first = rollouts[rollouts.collection == rollouts.collection.iloc[0]]
    parts = []
    if "x" in rollouts:
        for variant, number in {variants[0]: n, variants[-1]: n_last if len(variants) > 1 else n}.items():
            table = first[(first.variant == variant) & (first.kind == "singular")]
            parts.append(_choose_apart(table, number, min_distance))
    others = data.get("long", rollouts)
    others = others[
        (others.variant == variants[0])
        & (others.collection == first.collection.iloc[0])
        & (others.start == 0)
    ]
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
    labels = {
        "singular": lambda o: (
            f"#{o.direction}{'+' if o.sign > 0 else '-'}{' best' if o.variant != variants[0] else ''}"
        ),
        "published": lambda o: f"row {o.direction}",
        "constant": lambda o: f"always {action_names[o.direction]}",
        "walk": lambda o: f"walk {o.direction}",
    }
    chosen.insert(0, "label", [labels[o.kind](o) for o in chosen.itertuples()])
    columns = ["label", "variant", *OPTION, "start", "dwell", "away", "region", "score", "reason"]
    return chosen[[name for name in columns if name in chosen]]


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


def trace_highlights(
    lab: Lab, study: Study, highlights: pd.DataFrame, found: Mapping[int, Starts]
) -> pd.DataFrame:
    """What the highlighted options did, frame by frame."""
    seed = study.seeds[0]
    variants = {variant.name: variant for variant in study.variants if not variant.long}
    jobs, labels = [], []
    for (name, start), options in highlights.groupby(["variant", "start"]):
        variant = variants[name]
        job = {"variant": variant, "seed": seed, "starts": _choose_starts(study, variant, found[seed])}
        jobs.append({**_job(study), **job, "number": start, "options": options[OPTION]})
        labels.append(options.label)
    traces = lab.pmap(trace_options, jobs)
    pairs = [
        pair for names, parts in zip(labels, traces, strict=True) for pair in zip(names, parts, strict=True)
    ]
    return pd.concat([part.assign(label=label) for label, part in pairs], ignore_index=True)
