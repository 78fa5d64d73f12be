"""One game from start states to tables: collections, roll-outs, effects and highlighted options (Section 5.2).

`run` computes all results; it does not know the verdicts (see `claims`), so results do not depend on them. They are
plain: tables as lists of rows, and the roll-outs as one array with named columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.games import known
from eigenoptions.atari.published_starts import published_starts
from eigenoptions.atari.starts import Start
from reproduction.atari.jobs import PAPER, rollouts, starts, trace
from reproduction.atari.measures import (
    AXES,
    FAR,
    KINDS,
    OPTION,
    PLACED,
    SETTLED,
    Array,
    Table,
    joined,
    points_of,
)
from reproduction.atari.statistics import AGREEMENT, REACH, by_group, chosen, effect, level
from reproduction.experiment import Pmap, Results, Settings

# Measures compared with random directions; the first two decide, see `claims`.
COMPARED = (
    *("arrives", AGREEMENT, "dwell", "settles", REACH, "away", "places"),
    *("farthest", "died", "score", "first_stop", "stopped", "steady"),
)
AGAINST_WALKS = ("dwell", "settles", "arrives", "away", "places", "farthest", "died", "score")
# Highlighted options of the paper's variant, and of the last one.
HIGHLIGHTS, FURTHER_HIGHLIGHTS = 6, 4
# Kinds that are shown beside them, and why.
COMPARISONS = {
    "published": "best score of the published program",
    "constant": "best score of one action",
    "walk": "a random walk",
}
# Smallest distance between the places of highlighted options, in units of position.
APART = 24.0
KEYS = ("variant", "collection", "start", *OPTION)
# Settings that go into every job.
SHARED = ("game", "transitions", "longest", "until")


def run(settings: Settings, pmap: Pmap) -> Results:
    """Find starts, collect, roll out, compare: everything about one game that comes from the emulator.

    Parameters
    ----------
    settings
        ``game``, ``seeds`` (one per collection), ``starts``, ``bursts``, ``transitions``, ``longest``, ``frames``,
        ``until``, ``kinds``, ``way`` (the first variant; without it `PAPER`), ``variants`` (further ones, each `PAPER`
        with changes, and perhaps ``starts="authors"`` for the paper's own start states, its own ``kinds``, ``frames``,
        ``seeds`` and ``from``: from how many of the starts) and ``long`` (more roll-outs from the first start: a list
        of ``{"frames", "kinds"}``, perhaps with ``seeds`` and ``variant``).
    pmap
        Function that maps over jobs.

    Returns
    -------
    dict
        ``rollouts (N, C)`` with names of ``columns``, and ``variants``, to which its column variant points; ``long``
        (with ``long_variants``) and ``heights`` the same of long roll-outs; tables ``starts``, ``collections``,
        ``means``, ``effects``, ``levels`` and ``highlights``; ``trace_actions`` and ``trace_positions`` of the
        highlighted options; and the start states of the first collection, from which they were followed.
    """
    game, seeds = settings["game"], settings["seeds"]
    asked = {"game": game, "starts": settings["starts"], "bursts": settings["bursts"]}
    found = pmap(starts, [{**asked, "seed": seed} for seed in seeds])
    jobs = _jobs(settings, found)
    done = pmap(rollouts, jobs)
    variants = _variants(settings)
    names = [variant["name"] for variant in variants]
    pairs = list(zip(jobs, done, strict=True))
    short, long = ([pair for pair in pairs if pair[0]["heights"] == is_long] for is_long in (False, True))
    table = _table(short, names)
    results: Results = {
        "game": game,
        "variants": names,
        "columns": list(table),
        "rollouts": np.stack(list(table.values()), axis=1),
        "regions": {name: [list(ends) for ends in box] for name, box in known(game).regions.items()},
        "actions": list(Emulator(game).actions),
        "frames": settings["frames"],
        "acts": int(sum(result["acts"] for result in done)),
        "starts": _start_rows(game, seeds, found),
        "collections": _collections(pairs),
        "reached": {"starts": found[0]},
    }
    if long:
        # Some ways are followed for long only.
        names = list(dict.fromkeys([*names, *(job["variant"]["name"] for job, _ in long)]))
        results["long_variants"] = names
        results["long"] = np.stack(list(_table(long, names).values()), axis=1)
        results["heights"] = np.concatenate([result["heights"] for _, result in long])
        results["long_frames"] = max(job["frames"] for job, _ in long)
    results |= summaries(results)
    rows = highlight(results)
    results["highlights"] = rows
    results |= _traces(settings, found, rows, int(results.get("long_frames") or settings["frames"]), pmap)
    return results


def summaries(results: Results) -> Results:
    """Tables of means, effects, levels and groups from the roll-outs, one part per variant."""
    tables: Results = {"means": [], "effects": [], "levels": [], "groups": []}
    for number, variant in enumerate(results["variants"]):
        table = rolled(results, variant=number)
        for name, rows in (
            ("means", _mean_rows(table)),
            ("effects", _effect_rows(table)),
            ("levels", _level_rows(table) if "x" in table else []),
            ("groups", by_group(table, ("arrives", AGREEMENT, "dwell", REACH)) if "x" in table else []),
        ):
            tables[name] += [{"variant": variant, **row} for row in rows]
    return tables


def _mean_rows(table: Table) -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        part = chosen(table, kind=kind)
        row: dict[str, Any] = {"kind": kind, "options": len(part["kind"])}
        for name, column in part.items():
            if name not in (*KEYS, "region", *AXES):
                found = column[~np.isnan(column)]
                row[name] = float(found.mean()) if len(found) else float("nan")
        rows.append(row)
    return [row for row in rows if row["options"]]


def _effect_rows(table: Table) -> list[dict[str, Any]]:
    """Effects of singular directions against each other kind in its measures."""
    return [
        {"against": other, "measure": measure, **effect(table, measure, other=other, among=2).row()}
        for other, measures in (("random", COMPARED), ("rotated", COMPARED[:5]), ("walk", AGAINST_WALKS))
        if len(chosen(table, kind=other)["kind"])
        for measure in measures
        if "x" in table or measure not in (*PLACED, AGREEMENT, REACH)
    ]


def _level_rows(table: Table) -> list[dict[str, Any]]:
    """Agreement and share of reliable options of each kind."""
    rows = []
    for kind in ("singular", "random", "rotated", "published", "constant"):
        part = chosen(table, kind=kind)
        if len(part["kind"]):
            of = level(table, AGREEMENT, kind)
            ends = {"agreement": of.mean, "low": of.low, "high": of.high}
            rows.append({"kind": kind, **ends, **reliable_share(part)})
    return rows


def rolled(results: Results, name: str = "rollouts", **values: float | str) -> Table:
    """Roll-outs as a table, or those with given values of some columns.

    >>> results = {"columns": ["kind", "dwell"], "rollouts": np.array([[0, 0.5], [1, 0.25]])}
    >>> rolled(results, kind="random")["dwell"].tolist()
    [0.25]
    """
    table = dict(zip(results["columns"], results[name].T, strict=True))
    return chosen(table, **values)


def reliable(table: Table) -> list[dict[str, Any]]:
    """Options that go to one place from more than half of the starts, and not by staying there.

    Such an option settles near one place (less than FAR from its modal place from one of the starts) from more than
    half of all starts, and arrives there (see `measure`) from at least one of them. Each row has the keys of the
    option, ``starts`` (their number), and ``place``.
    """
    many = len(np.unique(table["start"]))
    names = np.stack([table[key] for key in ("collection", *OPTION)], axis=1)
    found = []
    order = np.lexsort(names.T[::-1])
    bounds = np.flatnonzero(np.any(np.diff(names[order], axis=0) != 0, axis=1)) + 1
    for rows in np.split(order, bounds):
        part = {key: column[rows] for key, column in table.items()}
        points, settles = points_of(part), part["settles"] > 0
        near = np.linalg.norm(points[:, None] - points[None], axis=2) < FAR
        near &= settles[:, None] & settles[None]
        best = int(near.sum(axis=1).argmax())
        if near[best].sum() > many / 2 and (part["arrives"][near[best]] > 0).any():
            key = {k: float(part[k][0]) for k in ("collection", *OPTION)}
            found.append({**key, "starts": int(near[best].sum()), "place": points[best].tolist()})
    return found


def reliable_share(table: Table) -> dict[str, float]:
    """Number of options, and the share of them that is reliable."""
    names = np.unique(np.stack([table[key] for key in ("collection", *OPTION)], axis=1), axis=0)
    return {"options": len(names), "reliable": len(reliable(table)) / len(names)}


def highlight(results: Results, many: int = HIGHLIGHTS) -> list[dict[str, Any]]:
    """The options of the first collection that figures and clips show, chosen by rule.

    Candidates are singular options that arrive somewhere. They are taken in order of the number of starts from which
    they settle near that place, then of dwell, then of their number. One that was taken from another start, or whose
    place is nearer than APART to that of one taken before, is skipped. If they are fewer than `many`, the options of
    largest dwell times distance follow, by the same rule. They are of the first variant; FURTHER_HIGHLIGHTS of the
    last variant, if there are others, are chosen likewise. For comparison, the best-scoring row of V by the published
    program, the best-scoring constant action (of the long roll-outs, where there are any) and a random walk follow.
    """
    first = float(rolled(results)["collection"][0])
    rows: list[dict[str, Any]] = []
    if "x" in results["columns"]:
        last = len(results["variants"]) - 1
        for variant, number in {0: many, last: FURTHER_HIGHLIGHTS if last else many}.items():
            part = rolled(results, variant=variant, collection=first, kind="singular")
            rows += _greedy(part, results, number)
    name = "long" if "long" in results else "rollouts"
    others = rolled(results, name, variant=0, collection=first, start=0)
    for kind, why in COMPARISONS.items():
        part = chosen(others, kind=kind)
        if len(part["kind"]):
            best = 0 if kind == "walk" else int(part["score"].argmax())
            rows.append(_highlight_row(part, best, results, why))
    return rows


def _greedy(table: Table, results: Results, many: int) -> list[dict[str, Any]]:
    points = points_of(table)
    same = (table["direction"][:, None] == table["direction"]) & (table["sign"][:, None] == table["sign"])
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < FAR
    support = (same & near & (table["settles"] > 0)).sum(axis=1)
    sure = np.lexsort((table["direction"], -table["dwell"], -support))
    sure = sure[table["arrives"][sure] > 0]
    rest = np.lexsort((table["direction"], -np.nan_to_num(table["dwell"] * table["away"])))
    rest = rest[~np.isnan(table["away"][rest]) & (table["away"][rest] >= FAR)]
    rows: list[dict[str, Any]] = []
    taken: list[Array] = []
    names = list(zip(table["direction"].tolist(), table["sign"].tolist(), strict=True))
    used = set[tuple[float, float]]()
    for number, i in enumerate([*sure.tolist(), *rest.tolist()]):
        new = len(taken) < many and names[i] not in used
        if new and all(np.linalg.norm(points[i] - p) >= APART for p in taken):
            taken.append(points[i])
            used.add(names[i])
            why = (
                f"settles here from {support[i]} of {len(np.unique(table['start']))} starts"
                if number < len(sure)
                else f"does not settle ({SETTLED:.0%} of the time at one place); large dwell times distance"
            )
            rows.append(_highlight_row(table, i, results, why))
    return rows


def _highlight_row(table: Table, i: int, results: Results, why: str) -> dict[str, Any]:
    kind = KINDS[int(table["kind"][i])]
    number, sign = int(table["direction"][i]), int(table["sign"][i])
    region = int(table["region"][i]) if "region" in table else -1
    variant = int(table["variant"][i])
    words = {"singular": f"#{number}{'+' if sign > 0 else '-'}", "published": f"row {number}"}
    words["singular"] += " further" if variant else ""
    words["constant"] = f"always {results['actions'][number]}" if kind == "constant" else ""
    name = results["variants"][variant]
    return {
        **{"variant": name, "kind": kind, "basis": int(table["basis"][i]), "direction": number, "sign": sign},
        "start": int(table["start"][i]),
        **{key: float(table[key][i]) if key in table else float("nan") for key in ("dwell", "away")},
        "region": list(results["regions"])[region] if region >= 0 else "",
        "score": float(table["score"][i]),
        "label": words.get(kind, f"{kind} {number}"),
        "reason": f"{name}: {why}" if variant else why,
    }


def _jobs(settings: Settings, found: Sequence[Any]) -> list[dict[str, Any]]:
    """Roll-outs to do, the longest first."""
    long = [
        {**extra.get("variant", PAPER), **extra, "from": 1, "heights": True}
        for extra in settings.get("long", [])
    ]
    jobs = []
    for way in [*long, *_variants(settings)]:
        base = {key: settings[key] for key in SHARED}
        base |= {key: way.get(key, settings[key]) for key in ("kinds", "frames")}
        base |= {"heights": way.get("heights", False), "variant": _roll_settings(way)}
        for seed, own in zip(settings["seeds"], found, strict=True):
            if seed in way.get("seeds", settings["seeds"]):
                its = _starts_of(settings, way, own)
                numbers: list[Any] = list(range(min(len(its), way.get("from", len(its)))))
                # One chart serves all starts.
                some = [numbers] if way.get("plan") else numbers
                jobs += [{**base, "seed": seed, "starts": its, "start": start} for start in some]
    return jobs


def _starts_of(settings: Settings, variant: Mapping[str, Any], own: Any) -> Any:
    """Start states of a variant, as plain data: its collection's own, or those of the paper's authors."""
    if variant.get("starts") != "authors":
        return own
    return [start.plain() for start in published_starts(settings["game"])]


def _variants(settings: Settings) -> list[Settings]:
    return [settings.get("way", PAPER), *settings.get("variants", [])]


def _table(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], names: Sequence[str]) -> Table:
    tables = []
    for job, result in pairs:
        head = {"variant": names.index(job["variant"]["name"]), "collection": job["seed"]}
        size = len(result["table"]["kind"])
        tables.append({**{key: np.full(size, float(x)) for key, x in head.items()}, **result["table"]})
    # Where the player's bytes are searched, collections may find different numbers of them; places are compared within
    # a collection, so that coordinates it does not have may be any constant.
    axes = [axis for axis in AXES if any(axis in table for table in tables)]
    return joined([{**{axis: np.zeros(len(table["kind"])) for axis in axes}, **table} for table in tables])


def _collections(pairs: Sequence[tuple[Mapping[str, Any], Any]]) -> list[dict[str, Any]]:
    facts = {(job["variant"]["name"], job["seed"]): done["facts"] for job, done in pairs if done["facts"]}
    return [{"variant": name, "collection": seed, **row} for (name, seed), row in facts.items()]


def _start_rows(game: str, seeds: Sequence[int], found: Sequence[Any]) -> list[dict[str, Any]]:
    rows = []
    for seed, its in zip(seeds, found, strict=True):
        for number, start in enumerate(Start.again(game, plain) for plain in its):
            place = " ".join(map(str, start.position))
            rows.append({"collection": seed, "start": number, "frames": start.frames, "position": place})
    return rows


def _traces(
    settings: Settings, found: Sequence[Any], rows: Sequence[Mapping[str, Any]], frames: int, pmap: Pmap
) -> Results:
    """What the highlighted options did, in the order of their rows; -1 and 0 after the end of each."""
    base = {key: settings[key] for key in SHARED} | {"seed": settings["seeds"][0]}
    groups: dict[tuple[str, int], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault((row["variant"], row["start"]), []).append(number)
    jobs = []
    for (name, start), numbers in sorted(groups.items()):
        (variant,) = (v for v in _variants(settings) if v["name"] == name)
        own = {"frames": variant.get("frames", frames), "variant": _roll_settings(variant), "start": start}
        own["starts"] = _starts_of(settings, variant, found[0])
        jobs.append({**base, **own, "options": [{key: rows[i][key] for key in OPTION} for i in numbers]})
    parts = pmap(trace, jobs)
    most = max((part["actions"].shape[1] for part in parts), default=0)
    wide = max((part["positions"].shape[2] for part in parts), default=0)
    actions = np.full((len(rows), most), -1, dtype=np.int8)
    positions = np.zeros((len(rows), most, wide), dtype=np.uint8)
    for (_, numbers), part in zip(sorted(groups.items()), parts, strict=True):
        length = part["actions"].shape[1]
        actions[numbers, :length], positions[numbers, :length] = part["actions"], part["positions"]
    return {"trace_actions": actions, "trace_positions": positions}


def _roll_settings(variant: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a variant that concern a single roll-out."""
    others = ("kinds", "frames", "seeds", "from", "starts", "heights", "variant")
    return {key: value for key, value in variant.items() if key not in others}
