"""Every discovery method on the same domains: diffusion times, learning, exploration online, cost and time.

A method that has no options on a domain counts there as the baseline without options, which is what its user would be
left with. Where it has fewer options than a measure asks for, all it has are taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from rich.console import Console
from rich.table import Table

from eigenoptions._validation import check_choice
from eigenoptions.discovery import discover
from eigenoptions.discovery.exploration import cycle
from eigenoptions.discovery.methods import get_method, methods
from eigenoptions.evaluation import best_option_chance, diffusion_estimate, diffusion_time, mean_interval
from eigenoptions.learning import q_learning
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from eigenoptions.plots import draw_policy
from reproduction.arena.domains import DOMAINS, make_domain
from reproduction.drawing import add_legend, draw_lines, make_graphs, make_maps
from reproduction.lab import Data, Lab
from reproduction.report import Section, write_page

NONE = "none"
KEYS = ["method", "domain"]
FULL: dict[str, Any] = {
    "domains": list(DOMAINS),
    "seeds": [0, 1, 2],
    "counts": [2, 4, 8, 16, 32, 64, 128],
    "learning": {"counts": [8, 32], "goals": 24, "runs": 5, "episodes": 150},
    "estimate": {"counts": [8, 32, 128], "walks": 5, "max_steps": 20_000_000},
    "online": {"seeds": range(6), "n_options": 8, "option_chance": 0.05, "steps_per_state": 150},
}
QUICK: dict[str, Any] = {
    "domains": ["four-rooms", "i-maze", "one-way", "costly"],
    "seeds": [0, 1],
    "counts": [2, 8, 32],
    "learning": {"counts": [8], "goals": 6, "runs": 3, "episodes": 50},
    "estimate": {"counts": [8], "walks": 2, "max_steps": 1_000_000},
    "online": {"seeds": range(3), "n_options": 8, "option_chance": 0.05, "steps_per_state": 100},
}
# Up to so many states diffusion times are exact and learning is measured; and states are explored online.
EXACT_STATES, ONLINE_STATES = 500, 300


def run(lab: Lab, names: Sequence[str] = (), domains: Sequence[str] = ()) -> Data:
    """Data frames: ``rows`` (one per number of options and seed), ``learning``, ``online`` and ``discovery``."""
    settings = QUICK if lab.quick else FULL
    for name in names:
        check_choice("method", name, methods())
    for name in domains:
        check_choice("domain", name, list(DOMAINS))
    sizes = {name: make_domain(name).n_states for name in domains or settings["domains"]}
    chosen = [NONE, *(names or methods())]
    # The longest jobs first, so that no worker is alone at the end. Large domains and the baseline have one seed.
    jobs, walks = [], []
    for domain, n_states in sorted(sizes.items(), key=lambda item: -item[1]):
        is_exact = n_states <= EXACT_STATES
        counts = settings["counts"] if is_exact else settings["estimate"]["counts"]
        for name in chosen:
            job = {"domain": domain, "method": name}
            measuring = {"counts": counts, "learning": settings["learning"], "estimate": settings["estimate"]}
            seeds = settings["seeds"] if is_exact and name != NONE else [0]
            jobs += [{**job, "seed": seed, **measuring} for seed in seeds]
            if n_states <= ONLINE_STATES:
                walks += [{**job, **settings["online"], "seeds": list(settings["online"]["seeds"])}]
    lab.describe("measuring options")
    measured = [result for result in lab.pmap(measure, jobs) if result is not None]
    lab.describe("exploring online")
    online = [frame for result in lab.pmap(explore_online, walks) for frame in result]
    return {
        "rows": pd.DataFrame([row for result in measured for row in result["rows"]]),
        "learning": pd.DataFrame([row for result in measured for row in result["learning"]]),
        "discovery": pd.DataFrame([row for result in measured for row in result["discovery"]]),
        "online": pd.DataFrame(online, columns=[*KEYS, "seed", "steps"]),
    }


def measure(
    domain: str,
    method: str,
    seed: int,
    counts: Sequence[int],
    learning: Mapping[str, Any],
    estimate: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Measures of the options of one method on one domain; None if seed 0 has the same options.

    >>> none = {"counts": [], "goals": 0, "runs": 0, "episodes": 0}
    >>> result = measure("i-maze", "eigen", 0, [2], none, {})
    >>> [row["n"] for row in result["rows"]]
    [2]
    """
    mdp, key = make_domain(domain), {"domain": domain, "method": method, "seed": seed}
    discovery: list[dict[str, Any]] = []
    sets: dict[int, OptionSet | None] = {0: None}
    if method != NONE:
        if seed and _is_same_as_seed_0(mdp, method, seed, counts[0]):
            return None
        sets, refused = discover_all(mdp, method, seed, counts)
        if seed == 0:
            seconds = time_discovery(mdp, method, 8 if 8 in sets else max(sets)) if sets else nan
            discovery = [{**key, "refused": "" if sets else refused, "seconds": seconds}]
    rows = [{**key, **measure_options(mdp, options, estimate)} for options in sets.values()]
    learned = [{**key, **row} for row in learn(mdp, sets, rows, seed, **learning)] if sets else []
    return {"rows": rows, "learning": learned, "discovery": discovery}


def discover_all(
    mdp: MDP, method: str, seed: int, counts: Sequence[int]
) -> tuple[dict[int, OptionSet | None], str]:
    """Options for each number of them, up to all there are; and why there are no more."""
    sets: dict[int, OptionSet | None] = {}
    max_states = get_method(method).max_states
    if max_states is not None and mdp.n_states > max_states:
        return sets, f"more than {max_states:,} states"
    reason = ""
    for n in counts:
        try:
            options = _discover(mdp, n, method, seed)
        except ValueError as error:
            reason = str(error)
            try:
                options = _discover(mdp, None, method, seed)
            except ValueError:
                break
        if len(options):
            sets[len(options)] = options
        if len(options) < n:
            break
    return sets, reason


def measure_options(mdp: MDP, options: OptionSet | None, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Diffusion times, mean length and cost of a set of options."""
    columns = ("uniform", "best", "chance", "low", "high", "length", "cost")
    row: dict[str, Any] = {"n": 0, **dict.fromkeys(columns, nan), "note": ""}
    if options is not None:
        length = float(options.mean_length.mean())
        row |= {"n": len(options), "length": length, "cost": measure_cost(mdp, options)}
    try:
        if mdp.n_states > EXACT_STATES:
            return row | estimate_diffusion(mdp, options, **estimate)
        if options is None:
            return row | {"best": diffusion_time(mdp), "uniform": diffusion_time(mdp), "chance": 0.0}
        best = best_option_chance(mdp, options)
        times = {"uniform": best.uniform_diffusion_time, "best": best.diffusion_time}
        return row | times | {"chance": best.chance}
    except ValueError as error:
        # Options that trap the walk.
        return row | {"note": str(error)}


def estimate_diffusion(
    mdp: MDP, options: OptionSet | None, walks: int, max_steps: int, counts: Sequence[int] = ()
) -> dict[str, float]:
    """Diffusion time by sampling, at the chance that is best on other walks than those reported."""
    chances = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3] if options is not None else [0.0]
    tried: dict[float, float] = {}
    for chance in chances:
        try:
            settings: Any = {"option_chance": chance, "walks": 2, "rng": 1, "max_steps": max_steps}
            tried[chance] = diffusion_estimate(mdp, options, **settings).mean
        except ValueError:
            # Some state was not touched in time, and with a higher chance of an option none will be sooner.
            break
    if not tried:
        raise ValueError(f"no walk of {max_steps:,} steps touched every state")
    chance = min(tried, key=lambda c: tried[c])
    settings = {"option_chance": chance, "walks": walks, "rng": 2, "max_steps": max_steps}
    result = diffusion_estimate(mdp, options, **settings)
    return {"best": result.mean, "low": result.low, "high": result.high, "chance": chance}


def measure_cost(mdp: MDP, options: OptionSet) -> float:
    """Cost per step of runs of options that begin and end where a step costs least; nan where all cost the same."""
    assert mdp.reward is not None
    is_cheap = mdp.reward == mdp.reward.max()
    if is_cheap.all() or mdp.successors is None:
        return nan
    paths = [
        path
        for i in range(len(options))
        for start in np.flatnonzero(is_cheap & options.initiation[i])
        if is_cheap[(path := options.follow(i, int(start)))[-1]]
    ]
    n_steps = sum(len(path) - 1 for path in paths)
    return -sum(float(mdp.reward[path[:-1]].sum()) for path in paths) / n_steps if n_steps else nan


def learn(
    mdp: MDP,
    sets: Mapping[int, OptionSet | None],
    rows: Sequence[Mapping[str, Any]],
    seed: int,
    counts: Sequence[int],
    goals: int,
    **settings: int,
) -> list[dict[str, Any]]:
    """Mean return of each run of Q-learning, averaged over goals; per number of options, and chance of an option."""
    if mdp.n_states > EXACT_STATES:
        return []
    best_chances = {row["n"]: row["chance"] for row in rows}
    others = np.delete(np.arange(mdp.n_states), mdp.start or 0)
    chosen = others[np.unique(np.linspace(0, len(others) - 1, goals).astype(int))].tolist()
    learned = []
    for n in sorted({max((m for m in sets if m <= wanted), default=min(sets)) for wanted in counts}):
        for how, chance in (("uniform", None), ("best", best_chances[n]))[: 2 if n else 1]:
            if chance is not None and not isfinite(chance):
                continue
            returns = [
                q_learning(
                    mdp,
                    sets[n],
                    max_steps=mdp.n_states,
                    rng=np.random.SeedSequence(seed, spawn_key=(goal,)),
                    option_chance=chance,
                    goal=goal,
                    **settings,  # type: ignore[arg-type]
                ).returns.mean(axis=1)
                for goal in chosen
            ]
            means = enumerate(np.mean(returns, axis=0).tolist())
            learned += [{"n": n, "how": how, "run": run, "mean_return": mean} for run, mean in means]
    return learned


def time_discovery(mdp: MDP, method: str, n: int) -> float:
    """CPU seconds of the discovery of n options; the first call may compile, so the second counts."""
    seconds = inf
    for _ in range(2):
        start = time.process_time()
        _discover(mdp, n, method, 0)
        seconds = min(seconds, time.process_time() - start)
    return seconds


def explore_online(
    domain: str, method: str, seeds: Sequence[int], n_options: int, option_chance: float, steps_per_state: int
) -> list[dict[str, Any]]:
    """Primitive steps until every state was seen, once per seed; inf where some were not seen in time.

    The walk never restarts, and each round derives options from all that was seen before. The result is empty for
    methods that cannot work on the part of a domain that was seen.

    >>> 0 < explore_online("i-maze", "none", [0], 4, 0.05, 100)[0]["steps"] < 1900
    True
    """
    mdp = make_domain(domain)
    silence_advice()
    settings: dict[str, Any] = {"n_options": n_options, "option_chance": option_chance, "method": method}
    if method == NONE:
        settings |= {"n_options": 2, "option_chance": 0.0, "method": "eigen"}
    elif get_method(method).needs_rewards:
        settings["rewards"] = mdp.reward
    results = []
    for seed in seeds:
        seen = np.zeros(mdp.n_states, dtype=np.bool_)
        seen[mdp.start] = True
        steps, needed = 0, inf
        try:
            for snapshot in cycle(mdp, steps=max(100, 2 * mdp.n_states), rng=seed, **settings):
                states, first = np.unique(snapshot.transitions.next_obs, return_index=True)
                last_new = int(first[~seen[states]].max(initial=-1))
                seen[states] = True
                if seen.all():
                    needed = float(steps + last_new + 1)
                steps = snapshot.steps
                if seen.all() or steps >= steps_per_state * mdp.n_states:
                    break
        except ValueError:
            return []
        results.append({"method": method, "domain": domain, "seed": seed, "steps": needed})
    return results


def _discover(mdp: MDP, n: int | None, method: str, seed: int) -> OptionSet:
    silence_advice()
    options: OptionSet = discover(mdp, n, method, rng=seed)
    return options


def _is_same_as_seed_0(mdp: MDP, method: str, seed: int, n: int) -> bool:
    try:
        one, other = (_discover(mdp, n, method, s).policy for s in (0, seed))
    except ValueError:
        return True
    return np.array_equal(one, other)


def silence_advice() -> None:
    """Leave out the advice of the library, which would be printed once per job."""
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)


# Measures and ranks


@dataclass(frozen=True)
class Measure:
    """A measure: its name, a sentence about it, and a function of the data to its values.

    Values are a data frame with index (method, domain) and columns mean, low and high. `higher`: whether a higher value
    is better. `against_none`: whether a method without options on a domain counts as the baseline.
    """

    name: str
    about: str
    values: Callable[[Data], pd.DataFrame]
    higher: bool = False
    against_none: bool = True


def diffusion_values(data: Data, n: int, how: str) -> pd.DataFrame:
    """Diffusion times with n options: median over seeds, and the lowest and highest of them."""
    rows = pick_counts(data["rows"], n)
    # A note says why there is no finite value; other values that are missing were not measured.
    rows = rows.assign(value=rows[how].where(rows.note == "", inf)).dropna(subset="value")
    groups = rows.groupby(KEYS).value
    values = pd.DataFrame({"mean": groups.median(), "low": groups.min(), "high": groups.max()})
    one_seed = groups.size() == 1
    for side in ("low", "high"):
        values.loc[one_seed, side] = rows.groupby(KEYS)[side].first()[one_seed]
    return values


def return_values(data: Data, n: int, how: str) -> pd.DataFrame:
    """Mean return of Q-learning with n options, with Student's interval over runs and seeds."""
    if data["learning"].empty:
        return pd.DataFrame(columns=["mean", "low", "high"])
    rows = pick_counts(data["learning"], n, [*KEYS, "seed"])
    rows = rows[(rows.how == how) | (rows.n == 0)]
    values = {}
    for key, returns in rows.groupby(KEYS).mean_return:
        low, high = mean_interval(returns) if len(returns) > 1 else (nan, nan)
        values[key] = {"mean": returns.mean(), "low": float(low), "high": float(high)}
    return pd.DataFrame.from_dict(values, orient="index")


def online_values(data: Data) -> pd.DataFrame:
    """Steps until every state was seen: median and quartiles over seeds, which are no averages."""
    steps = data["online"].groupby(KEYS).steps
    names = {"mean": 0.5, "low": 0.25, "high": 0.75}
    return pd.DataFrame({name: steps.quantile(q, interpolation="nearest") for name, q in names.items()})


def column_values(data: Data, table: str, column: str, n: int | None = None) -> pd.DataFrame:
    """Median of a column over seeds, and the lowest and highest."""
    rows = data[table] if n is None else pick_counts(data[table], n)
    groups = rows.dropna(subset=column).groupby(KEYS)[column]
    return pd.DataFrame({"mean": groups.median(), "low": groups.min(), "high": groups.max()})


def pick_counts(rows: pd.DataFrame, n: int, keys: Sequence[str] = (*KEYS, "seed")) -> pd.DataFrame:
    """The rows with n options of each seed, or with the most below."""
    rows = rows.assign(distance=np.where(rows.n <= n, n - rows.n, 1_000_000 + rows.n))
    return rows[rows.distance == rows.groupby(list(keys)).distance.transform("min")]


# Where episodes reach the goal, and where walks are measured.
_SHARE, _STEPS = "Share of evaluation episodes that reach the goal", "Expected steps between two states"
MEASURES = [
    Measure("diffusion time, 8 options", f"{_STEPS}, exact, at the option chance that is best for the method; an "
            "estimate on large domains.", partial(diffusion_values, n=8, how="best")),
    Measure("diffusion time, 32 options", "The same with more options.", partial(diffusion_values, n=32, how="best")),
    Measure("diffusion time, 64 options, uniform choice", "The paper's measure: every decision is uniform over actions "
            "and options. With few options it is huge.", partial(diffusion_values, n=64, how="uniform")),
    Measure("steps to see every state, online", "Nothing is known at first; after each round options are derived from "
            "what was seen. Median and quartiles.", online_values),
    Measure("return of Q-learning, 8 options", f"{_SHARE}, averaged over goals, at the best option chance; 95% "
            "interval.", partial(return_values, n=8, how="best"), higher=True),
    Measure("return of Q-learning, 32 options, uniform choice", "The same with the paper's behaviour.",
            partial(return_values, n=32, how="uniform"), higher=True),
    Measure("cost per step", "Of runs of 8 options that begin and end outside of costly states. The least possible is "
            "1.", partial(column_values, table="rows", column="cost", n=8), against_none=False),
    Measure("time of discovery", "CPU seconds for 8 options, on the machine of the run.",
            partial(column_values, table="discovery", column="seconds"), against_none=False),
]  # fmt: skip


def rank(data: Data, measure: Measure) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ranks (methods x domains, 1 is best), and per method its mean rank and mean ratio to the baseline."""
    means = measure.values(data)["mean"].unstack()
    filled = means.reindex(dict.fromkeys(data["rows"].method if measure.against_none else means.index))
    ratio = pd.Series(nan, index=filled.index)
    if measure.against_none and NONE in means.index:
        filled = filled.fillna(means.loc[NONE])
        ratios = means / means.loc[NONE]
        is_known = np.isfinite(ratios) & (ratios > 0)
        is_complete = is_known.sum(axis=1) == means.notna().sum(axis=1)
        ratio = np.exp(np.log(ratios.where(is_known)).mean(axis=1)).where(is_complete).reindex(filled.index)
    ranks = filled.rank(ascending=not measure.higher)
    summary = pd.DataFrame({"rank": ranks.mean(axis=1), "ratio": ratio}).dropna(subset="rank")
    return ranks, summary.rename_axis("method").sort_values(["rank", "method"])


def find_strengths(orders: Mapping[str, pd.DataFrame], method: str) -> str:
    """The measures in which a method is among the first three or the last three, in a sentence each."""
    ranks = {
        name: list(order.index).index(method) + 1 for name, order in orders.items() if method in order.index
    }
    good = [f"{name} ({rank} of {len(orders[name])})" for name, rank in ranks.items() if rank <= 3]
    weak = [
        f"{name} ({rank} of {len(orders[name])})"
        for name, rank in ranks.items()
        if rank > max(3, len(orders[name]) - 3)
    ]
    sentences = (("Good", good), ("Weak", weak))
    return " ".join(f"{word}: {'; '.join(names)}." for word, names in sentences if names)


# Page


def write(path: Path, data: Data, *, quick: bool, seconds: float) -> None:
    """Write the page, and print the first three methods of each measure."""
    settings = QUICK if quick else FULL
    domains = list(dict.fromkeys(data["rows"].domain))
    names = [name for name in dict.fromkeys(data["rows"].method) if name != NONE]
    shown = [m for m in MEASURES if len(rank(data, m)[1])]
    orders = {m.name: rank(data, m)[1] for m in shown}
    table = Table("measure", "1st", "2nd", "3rd", box=None)
    for name, order in orders.items():
        table.add_row(name, *order.index[:3])
    Console().print(table)
    ranking = pd.DataFrame({name: order["rank"].map("{:.1f}".format) for name, order in orders.items()})
    ranking = ranking.reindex(orders[shown[0].name].index.union(ranking.index, sort=False)).fillna("")
    sections = [
        Section(
            "ranking",
            "Ranking",
            "Mean rank over the domains, 1 is best. A method that has no options on a domain counts there as the "
            "baseline, primitive actions alone, which is ranked too.",
            [ranking.rename_axis("method").reset_index()],
        ),
        Section(
            "methods",
            "Strengths and weaknesses",
            "Measures in which a method is among the first or the last three; maps show the first options.",
            [block for name in names for block in _describe_with_maps(data, orders, name)],
        ),
        *(
            Section(m.name.replace(" ", "-").replace(",", ""), m.name, m.about, [_show_values(data, m)])
            for m in shown
        ),
        Section(
            "curves",
            "Diffusion time over the number of options",
            "At the best option chance, and with a uniform choice over actions and options as in the paper.",
            [draw_diffusion(data, how) for how in ("best", "uniform")],
        ),
        Section(
            "protocol",
            "Domains and protocol",
            "Every method has its default settings, which were not tuned on these domains. Methods that draw random "
            f"numbers have {len(settings['seeds'])} seeds: tables show the median, the lowest and the highest. Beyond "
            f"{EXACT_STATES} states diffusion times are means of {settings['estimate']['walks']} walks that touch "
            "every state; the option chance is chosen on other walks. Q-learning follows the paper: "
            f"{settings['learning']['episodes']} episodes of at most as many steps as there are states, "
            f"{settings['learning']['runs']} runs for each of {settings['learning']['goals']} goals. Online, one walk "
            f"from the start never restarts, at most {settings['online']['steps_per_state']} steps per state; each "
            "round has twice as many steps as there are states, at least 100.",
            [
                pd.DataFrame(
                    [(name, DOMAINS[name][0], make_domain(name).n_states) for name in domains],
                    columns=["domain", "what it is", "states"],
                )
            ],
        ),
    ]
    header = Markup(
        "<p>{} discovery methods on the same {} domains, by <code>python -m reproduction arena methods</code>.</p>"
        '<p class="facts">{:.1f} minutes of CPU time. Data: {}.</p>'
    ).format(len(names), len(domains), seconds / 60, _link(data))
    write_page(path, "Discovery methods compared", sections, header=header)


def _link(data: Data) -> Markup:
    return Markup(", ").join(Markup('<a href="data/{0}.csv">{0}.csv</a>').format(name) for name in data)


def _show_values(data: Data, measure: Measure) -> Markup:
    """Values of one measure by method and domain, in the order of the ranking; the best are bold."""
    values, (ranks, order) = measure.values(data), rank(data, measure)
    cells = {}
    for name in order.index:
        row = {}
        for domain in ranks.columns:
            text = "no options"
            if (name, domain) in values.index:
                value = values.loc[(name, domain)]
                text = format_number(value["mean"])
                if isfinite(value.low) and value.low != value.high:
                    text += f"<br><small>{format_number(value.low)} to {format_number(value.high)}</small>"
                if ranks.loc[name, domain] == 1:
                    text = f"<b>{text}</b>"
            row[domain] = text
        if measure.against_none:
            row["of none"] = "" if np.isnan(order.ratio[name]) else f"{order.ratio[name]:.2g}"
        cells[escape(name)] = row
    html = pd.DataFrame.from_dict(cells, orient="index").to_html(escape=False, border=0, classes="small")
    return Markup(f'<div class="scroll">{html}</div>')


def format_number(x: float) -> str:
    """A value of a table in three digits.

    >>> format_number(267.7), format_number(1.1e6), format_number(0.0123), format_number(float("inf"))
    ('268', '1.1e6', '0.0123', 'never')
    """
    if x == inf:
        return "never"
    if abs(x) >= 1e5:
        return f"{x:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def _describe_with_maps(data: Data, orders: Mapping[str, pd.DataFrame], name: str) -> Iterator[Any]:
    """Strengths and weaknesses of a method, and its first options on the domain that shows it best."""
    method, discovery = get_method(name), data["discovery"][data["discovery"].method == name]
    refused = [f"{row.domain} ({row.refused})" for row in discovery.itertuples() if row.refused]
    text = find_strengths(orders, name) + (f" No options: {'; '.join(refused)}." if refused else "")
    yield Markup("<h3>{}</h3><p class='facts'>{}</p><p>{}</p>").format(name, method.summary, text)
    rows = data["rows"][data["rows"].method == name]
    preferred = ["costly" if method.needs_rewards else "four-rooms", *rows.domain]
    domain = next((d for d in preferred if d in set(rows.domain) and make_domain(d).coords is not None), None)
    if domain is None:
        return
    mdp = make_domain(domain)
    counts = sorted(rows[rows.domain == domain].n)
    options = _discover(mdp, next((n for n in counts if n >= 4), counts[-1]), name, 0)[:4]
    figure, axes = make_maps(len(options), width=4.5)
    for ax, option in zip(axes, options, strict=False):
        draw_policy(ax, mdp, option.policy)
        ax.set_title(option.label)
    yield figure


def draw_diffusion(data: Data, how: str) -> Any:
    """Median diffusion time over seeds by number of options: one graph per domain, one line per method."""
    # Powers of two, which all methods share.
    rows = data["rows"][(data["rows"].n & (data["rows"].n - 1)) == 0]
    medians = rows[rows.n > 0].groupby(["domain", "method", "n"])[how].median().dropna().unstack()
    domains = list(dict.fromkeys(medians.index.get_level_values("domain")))
    figure, axes = make_graphs(len(domains), columns=3)
    for ax, domain in zip(axes, domains, strict=False):
        lines = medians.loc[domain].dropna(axis=1, how="all")
        baseline = data["rows"][(data["rows"].domain == domain) & (data["rows"].method == NONE)].best.iloc[0]
        ticks = [str(n) for n in lines.columns]
        draw_lines(ax, range(len(ticks)), dict(lines.iterrows()), baseline=baseline, ticks=ticks)
        ax.set(title=domain, yscale="log", ylabel="steps")
    for ax in axes[len(domains) :]:
        ax.axis("off")
    add_legend(figure)
    return figure
