"""Every discovery method on the same domains.

The measures are diffusion times, learning, cost, and exploration online.

A method that has no options on a domain counts there as the baseline without options,
which is what its user would be left with. Where it has fewer options than a measure
asks for, all it has are taken.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from eigenoptions.discovery import discover
from eigenoptions.discovery.method import get_method, methods
from eigenoptions.evaluation import best_option_chance, diffusion_time
from eigenoptions.learning import q_learning
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from reproduction.lab import Data, Lab
from reproduction.page import Section
from studies.arena.domains import DOMAINS, make_domain
from studies.arena.rounds import note_first_visits, walk_in_rounds
from studies.arena.tasks import Rows

NAMES = methods()
NONE = "none"
KEYS = ["method", "domain"]
QUICK_DOMAINS = ("four-rooms", "i-maze", "one-way", "costly")
LEARNING = {"goals": 24, "runs": 5, "episodes": 150}
QUICK_LEARNING = {"goals": 6, "runs": 3, "episodes": 50}


class Measure(NamedTuple):
    """What is measured with how many options, and how methods are ranked by it.

    `about` is a sentence for the page, `column` the column of the data frame.
    """

    about: str
    column: str
    n: int
    higher_is_better: bool = False
    counts_missing_as_none: bool = True


MEASURES = {
    "diffusion time, 8 options": Measure(
        "Expected steps between two states, exact, at the option chance that is best "
        "for the method.",
        column="best",
        n=8,
    ),
    "diffusion time, 32 options": Measure(
        "The same with more options.",
        column="best",
        n=32,
    ),
    "diffusion time, 64 options, uniform choice": Measure(
        "The paper's measure: every decision is uniform over actions and options. "
        "With few options it is huge.",
        column="uniform",
        n=64,
    ),
    "steps to see every state, online": Measure(
        "Nothing is known at first; after each round options are derived from what "
        "was seen.",
        column="online",
        n=0,
    ),
    "return of Q-learning, 8 options": Measure(
        "Share of evaluation episodes that reach the goal, averaged over goals, at "
        "the best option chance.",
        column="return at best",
        n=8,
        higher_is_better=True,
    ),
    "return of Q-learning, 32 options, uniform choice": Measure(
        "The same with the paper's behaviour.",
        column="return at uniform",
        n=32,
        higher_is_better=True,
    ),
    "cost per step": Measure(
        "Of runs of 8 options that begin and end outside of costly states. The least "
        "possible is 1.",
        column="cost",
        n=8,
        counts_missing_as_none=False,
    ),
}


def run(lab: Lab, names: Sequence[str], domains: Sequence[str]) -> Data:
    """Measure methods: data frame ``rows``.

    One row per method, domain, seed and number of options. Rows with 0 options hold
    what needs none.
    """
    pairs = [
        {"domain": domain, "method": name}
        for domain, name in product(domains, [NONE, *names])
    ]
    seeds = 3
    counts: tuple[int, ...] = (8, 32, 64)
    learning = LEARNING
    if lab.quick:
        seeds = 2
        counts = (8,)
        learning = QUICK_LEARNING
    lab.describe("measuring options")
    jobs = []
    for pair in pairs:
        # There is nothing to discover: one seed.
        n_seeds = 1 if pair["method"] == NONE else seeds
        for seed in range(n_seeds):
            job = {**pair, "seed": seed, "counts": counts, "learning": learning}
            jobs.append(job)
    rows = [row for result in lab.pmap(measure, jobs) for row in result]

    lab.describe("exploring online")
    n_walks = 3 if lab.quick else 6
    walks = [{**pair, "seeds": list(range(n_walks))} for pair in pairs]
    rows += [row for result in lab.pmap(explore_online, walks) for row in result]
    return {"rows": pd.DataFrame(rows)}


def measure(
    domain: str,
    method: str,
    seed: int,
    counts: Sequence[int],
    learning: Mapping[str, int],
) -> Rows:
    """Measure the options of one method on one domain.

    The result is empty if seed 0 has the same options.

    >>> learning = {"goals": 1, "runs": 1, "episodes": 1}
    >>> [row["n"] for row in measure("i-maze", "eigen", 0, [2], learning)]
    [2]
    """
    mdp = make_domain(domain)
    key = {"domain": domain, "method": method, "seed": seed}
    if method == NONE:
        return [{**key, "n": 0, **measure_options(mdp, None, seed, **learning)}]
    rows: Rows = []
    for n in counts:
        options: Any = discover_most(mdp, n, method, seed)
        if options is None or (rows and len(options) <= rows[-1]["n"]):
            break
        if seed:
            first: Any = discover_most(mdp, n, method, 0)
            if np.array_equal(options.policy, first.policy):
                break
        measured = measure_options(mdp, options, seed, **learning)
        rows.append({**key, "n": len(options), **measured})
    return rows


def discover_most(mdp: MDP, n: int, method: str, seed: int) -> OptionSet | None:
    """`n` options of a method, or all there are; None if there are none."""
    # Without the advice of the library, which would be printed once per job.
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    for number in (n, None):
        with suppress(ValueError):
            return discover(mdp, number, method, rng=seed) or None
    return None


def measure_options(
    mdp: MDP, options: OptionSet | None, seed: int, **learning: int
) -> dict[str, float]:
    """Diffusion times, returns and cost of a set of options.

    A walk that options trap never arrives.
    """
    if options is None:
        time = diffusion_time(mdp)
        result = {"best": time, "chance": 0.0, "uniform": time}
    else:
        result = {"best": inf, "chance": 0.0, "uniform": inf}
        with suppress(ValueError):
            best = best_option_chance(mdp, options)
            result = {"best": best.diffusion_time, "chance": best.chance}
            result["uniform"] = best.uniform_diffusion_time
        result["cost"] = measure_cost(mdp, options)
    for name, chance in (("uniform", None), ("best", result["chance"])):
        result[f"return at {name}"] = measure_return(
            mdp, options, chance, seed, **learning
        )
    return result


def measure_return(
    mdp: MDP,
    options: OptionSet | None,
    chance: float | None,
    seed: int,
    goals: int,
    **settings: int,
) -> float:
    """Mean return of Q-learning over some goals, spread over the states."""
    others = np.delete(np.arange(mdp.n_states), mdp.start or 0)
    places = np.linspace(0, len(others) - 1, goals).astype(int)
    learning: Any = {"max_steps": mdp.n_states, "option_chance": chance, **settings}
    means = []
    for goal in others[np.unique(places)].tolist():
        rng = np.random.SeedSequence(seed, spawn_key=(goal,))
        record = q_learning(mdp, options, goal=goal, rng=rng, **learning)
        means.append(record.returns.mean())
    return float(np.mean(means))


def measure_cost(mdp: MDP, options: OptionSet) -> float:
    """Cost per step of runs of options between states where a step costs least.

    It is nan where all steps cost the same.
    """
    is_cheap = mdp.reward == mdp.reward.max()
    if is_cheap.all() or mdp.successors is None:
        return nan
    n_steps = 0
    total_cost = 0.0
    for i in range(len(options)):
        for start in np.flatnonzero(is_cheap & options.initiation[i]):
            path = options.follow(i, int(start))
            if is_cheap[path[-1]]:
                n_steps += len(path) - 1
                total_cost -= float(mdp.reward[path[:-1]].sum())
    if n_steps == 0:
        return nan
    return total_cost / n_steps


def explore_online(
    domain: str,
    method: str,
    seeds: Sequence[int],
    n_options: int = 8,
    steps_per_state: int = 150,
) -> Rows:
    """Primitive steps until every state was seen, once per seed.

    It is inf where some were not seen in time.

    The walk never restarts, and each round derives options from all that was seen
    before. The result is empty for methods that cannot work on the part of a domain
    that was seen, and on domains of more than 300 states.

    >>> 0 < explore_online("i-maze", "none", [0], 4)[0]["online"] < 1900
    True
    """
    mdp = make_domain(domain)
    if mdp.n_states > 300:
        return []
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)

    settings: dict[str, Any] = {
        "method": method,
        "n_options": n_options,
        "option_chance": 0.05,
    }
    if method == NONE:
        settings |= {"method": "eigen", "n_options": 2, "option_chance": 0.0}
    elif get_method(method).needs_rewards:
        settings["rewards"] = mdp.reward

    round_steps = max(100, 2 * mdp.n_states)
    n_rounds = steps_per_state * mdp.n_states // round_steps
    results = []
    for seed in seeds:
        first_visit = np.where(np.arange(mdp.n_states) == mdp.start, 0, -1)
        walked = walk_in_rounds(
            mdp, round_steps=round_steps, stop_chance=0.0, rng=seed, **settings
        )
        for number, batch in enumerate(islice(walked, n_rounds)):
            note_first_visits(first_visit, batch, number * round_steps)
            if first_visit.min() >= 0:
                break

        n_steps = inf
        if first_visit.min() >= 0:
            n_steps = float(first_visit.max())
        key = {"method": method, "domain": domain, "seed": seed, "n": 0}
        results.append({**key, "online": n_steps})
    return results


def get_values(rows: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Median over seeds, and the lowest and highest, by method and domain."""
    if measure.column not in rows:
        rows = rows.assign(**{measure.column: nan})
    rows = rows.dropna(subset=measure.column)
    # Of each seed the row with n options, or with the most below.
    rows = rows[rows.n <= measure.n]
    rows = rows[rows.n == rows.groupby([*KEYS, "seed"]).n.transform("max")]
    groups = rows.groupby(KEYS)[measure.column]
    return pd.DataFrame(
        {"median": groups.median(), "low": groups.min(), "high": groups.max()}
    )


def rank(rows: pd.DataFrame, measure: Measure) -> pd.Series:
    """Mean rank of each method over the domains, 1 is best, in this order."""
    medians = get_values(rows, measure)["median"].unstack()
    if measure.counts_missing_as_none and NONE in medians.index:
        medians = medians.reindex(dict.fromkeys(rows.method)).fillna(medians.loc[NONE])
    ranks = medians.rank(ascending=not measure.higher_is_better).mean(axis=1).dropna()
    return ranks.rename_axis("method").sort_index().sort_values(kind="stable")


# Page


def describe(data: Data, *, quick: bool) -> tuple[str, Markup, list[Section]]:
    """Title, introduction and sections; prints each measure's three best methods."""
    rows = data["rows"]
    learning = QUICK_LEARNING if quick else LEARNING
    domains = list(dict.fromkeys(rows.domain))
    names = [name for name in dict.fromkeys(rows.method) if name != NONE]

    orders = {}
    for name, measure in MEASURES.items():
        order = rank(rows, measure)
        if len(order):
            orders[name] = order
            print(f"{name}: {', '.join(order.index[:3])}")

    ranking = pd.DataFrame(
        {name: order.map("{:.1f}".format) for name, order in orders.items()}
    ).fillna("")
    text = (
        "Mean rank over the domains, 1 is best. A method that has no options on a "
        "domain counts there as the baseline, primitive actions alone, which is "
        "ranked too."
    )
    sections = [
        Section(
            "ranking", "Ranking", text, [ranking.rename_axis("method").reset_index()]
        )
    ]
    for name in orders:
        anchor = name.replace(" ", "-").replace(",", "")
        table = _show(rows, name)
        sections.append(Section(anchor, name, MEASURES[name].about, [table]))

    about = [(name, DOMAINS[name][0], make_domain(name).n_states) for name in domains]
    text = (
        "Every method has its default settings, which were not tuned on these "
        "domains. Tables show the median over the seeds of methods that draw random "
        "numbers, the lowest and the highest. Q-learning follows the paper: "
        f"{learning['episodes']} episodes of at most as many steps as there are "
        f"states, {learning['runs']} runs for each of {learning['goals']} goals. "
        "Online, one walk from the start never restarts, at most 150 steps per state; "
        "each round has twice as many steps as there are states, at least 100."
    )
    table = pd.DataFrame(about, columns=["domain", "what it is", "states"])
    sections.append(Section("protocol", "Domains and protocol", text, [table]))

    introduction = Markup(
        "{} discovery methods on the same {} domains, by "
        "<code>python -m studies arena methods</code>."
    ).format(len(names), len(domains))
    return "Discovery methods compared", introduction, sections


def _show(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Values of one measure by method and domain, in the order of the ranking.

    Where seeds differ, a cell shows their range.
    """
    values = get_values(rows, MEASURES[name])
    text = values.map(format_number)
    ranges = values.low < values.high
    text["median"] += np.where(ranges, " (" + text.low + "–" + text.high + ")", "")
    cells = text["median"].unstack().reindex(rank(rows, MEASURES[name]).index)
    return cells.fillna("no options").reset_index()


def format_number(x: float) -> str:
    """A value of a table in three digits.

    >>> [format_number(x) for x in (267.7, 1.1e6, 0.0123, float("inf"))]
    ['268', '1.1e6', '0.0123', 'never']
    """
    if x == inf:
        return "never"
    if abs(x) >= 1e5:
        return f"{x:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"
