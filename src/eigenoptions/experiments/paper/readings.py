"""Looking closer: Figures 6 and 7 under other readings of the method.

The paper leaves six choices open: which Laplacian, whether the eigenvector of eigenvalue zero counts, one sign or
both, which values count as zero (in its authors' code those below 0.001), which basis a repeated eigenvalue gets, and
which of two equally good actions an option takes.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions import plots
from eigenoptions.experiments.experiment import Claim, Experiment, Note, Pmap, Results, Settings
from eigenoptions.experiments.paper.jobs import diffuse, eigen, learn_all, skills
from eigenoptions.experiments.tables import Row, column, diffusion_rows, distinct, where
from eigenoptions.mdp import maze

READINGS: dict[str, dict[str, Any]] = {
    "as reported": {},
    "eigenvalue zero left out": {"skip_zero": True},
    "combinatorial Laplacian": {"operator": "combinatorial"},
    "random-walk Laplacian": {"operator": "random-walk"},
    "values below 0.001 are zero": {"absolute": 0.001},
    "one sign only": {"both_signs": False},
    "repeated eigenvalues turned by 45 degrees": {"turn": 45},
    "repeated eigenvalues turned by 90 degrees": {"turn": 90},
}
SETTINGS: dict[str, Settings] = {
    "paper": {
        "episodes": {"open-room": 250, "i-maze": 250, "four-rooms": 500},
        "options": [0, 2, 4, 8, 16, 32, 64, 128, 256],
        "orders": 24,
        "first": 64,
        "runs": 100,
        "max_steps": 100,
        "seed": 2018,
        "block": 50,
    },
}
SETTINGS["quick"] = {
    **SETTINGS["paper"],
    "episodes": {"i-maze": 20},
    "options": [0, 2, 16],
    "orders": 3,
    "first": 8,
    "runs": 4,
    "block": 4,
}
REPORTED, ZERO, PLAIN, WALK, ABSOLUTE, ONE, *TURNED = READINGS


def run(settings: Settings, pmap: Pmap) -> Results:
    """Diffusion time and mean return under each reading, and diffusion time for each order of equal actions."""
    mazes = list(settings["episodes"])
    ways = [(name, reading, eigen(**how)) for name in mazes for reading, how in READINGS.items()]
    orders = list(permutations(range(4)))[: settings["orders"]]
    ties = [(name, list(order)) for name in mazes for order in orders]
    first = {name: min(settings["first"], 2 * maze(name).n_states) for name in mazes}
    curves = pmap(
        diffuse,
        [{"maze": name, "options": how} for name, _, how in ways]
        + [{"maze": name, "options": eigen(first[name], ties=order)} for name, order in ties],
    )
    readings = [{"domain": name, "reading": reading} for name, reading, _ in ways]
    tied = [{"domain": name, "order": "".join(map(str, order))} for name, order in ties]
    return {
        "diffusion": diffusion_rows(readings, curves[: len(ways)]),
        "ties": diffusion_rows(tied, curves[len(ways) :]),
        "learning": _learning(settings, pmap, ways),
        "stops": [_stops(name) for name in mazes],
    }


def _learning(settings: Settings, pmap: Pmap, ways: list[tuple[str, str, dict[str, Any]]]) -> list[Row]:
    """Mean returns for each reading and number of options."""
    keys, scenarios = [], []
    for name, reading, how in ways:
        options = skills(maze(name), how)
        assert options is not None
        length = {"episodes": settings["episodes"][name], "max_steps": settings["max_steps"]}
        for n in sorted({min(n, len(options)) for n in settings["options"]}):
            keys.append({"domain": name, "reading": reading, "options": n})
            scenarios.append({"maze": name, "options": {**how, "n": n}, **length})
    found = learn_all(pmap, scenarios, settings["runs"], settings["block"], settings["seed"])
    return [
        {
            **key,
            "mean_return": float(returns[0].mean()),
            "final_return": float(returns[0][:, -1].mean()),
            "learning_return": float(returns[1].mean()),
        }
        for key, returns in zip(keys, found, strict=True)
    ]


def _stops(name: str) -> Row:
    """Number of ends of eigenoptions that the tolerance of 0.001 changes."""
    mdp = maze(name)
    ours, theirs = skills(mdp, eigen()), skills(mdp, eigen(absolute=0.001))
    assert ours is not None and theirs is not None  # noqa: PT018
    changed = ours.termination != theirs.termination
    early = changed[: 2 * 32]
    return {
        "domain": name,
        "options": len(ours),
        "ends": int(ours.termination.sum()),
        "changed": int(changed.sum()),
        "changed_first_64": int(early.sum()),
    }


def figure(results: Results) -> Any:
    """Diffusion time above, mean return below; thin lines are the orders of equal actions."""
    upper: list[plots.Panel] = []
    lower: list[plots.Panel] = []
    for name in distinct(results["diffusion"], "domain"):
        curves = {reading: _curve(results, name, reading) for reading in READINGS}
        shown = min(65, *(len(y) for y in curves.values()))
        ties = _ties(results, name)
        shown = min(shown, ties.shape[1])
        upper.append(
            plots.curve_panel(
                range(shown),
                {reading: y[:shown] for reading, y in curves.items()},
                name,
                xlabel="options",
                ylabel="" if upper else "diffusion time",
                log=True,
                threads={"orders of equal actions": ties[:, :shown]},
                levels={"primitive actions": curves[REPORTED][0]},
                legend=False,
            )
        )
        rows = where(results["learning"], domain=name)
        counts = distinct(where(rows, reading=ONE), "options")
        counts = [n for n in counts if all(where(rows, reading=r, options=n) for r in READINGS)]
        lower.append(
            plots.curve_panel(
                range(len(counts)),
                {reading: [_mean(results, name, reading, n) for n in counts] for reading in READINGS},
                "",
                xlabel="options",
                ylabel="" if lower else "mean return",
                ticks=[str(n) for n in counts],
                limits=(-0.02, 1.02),
                legend=False,
            )
        )
    return plots.figure([*upper, *lower], columns=len(upper), width=plots.PAGE, legend=True)


def claims(results: Results) -> list[Claim]:
    """No claims: the paper does not discuss other readings."""
    return []


def notes(results: Results) -> list[Note]:
    """What depends on the reading, and what does not."""
    domains = distinct(results["diffusion"], "domain")
    few, many = 4, 64
    rows = [
        {"reading": reading}
        | {f"{name}, {m}": f"{_at(results, name, reading, m):,.0f}" for name in domains for m in (few, many)}
        | {
            f"return {name}, {m}": f"{_learned(results, name, reading, m):.2f}"
            for name in domains
            for m in (few, many)
        }
        for reading in READINGS
    ]
    return [
        (
            f"Diffusion time and mean return with {few} and with {many} options (all, where there are fewer). The "
            "first "
            "options hang on the reading, above all on the basis of a repeated eigenvalue and on whether "
            "eigenvalue zero "
            "counts; with enough options readings hardly matter.",
            rows,
        ),
        _enough(results),
        "Under the combinatorial and the random-walk Laplacian the eigenvector of eigenvalue zero is constant, and "
        "its two "
        "options start nowhere. Under the normalized one, which the paper uses, it follows the degree of the "
        "states: its "
        "option with a minus sign runs to the nearest state with the fewest neighbours (a corner or a doorway), "
        "its option "
        "with a plus sign away from the walls.",
        _equal_actions(results),
        _tolerance(results),
    ]


def _at(results: Results, name: str, reading: str, m: int) -> float:
    y = _curve(results, name, reading)
    return float(y[min(m, len(y) - 1)])


def _learned(results: Results, name: str, reading: str, m: int) -> float:
    counts = distinct(where(results["learning"], domain=name, reading=reading), "options")
    return _mean(results, name, reading, max(n for n in counts if n <= m))


def _enough(results: Results) -> str:
    never = [
        f"{reading} in {name}"
        for name in distinct(results["diffusion"], "domain")
        for reading in READINGS
        for y in [_curve(results, name, reading)]
        if y[-1] >= y[0]
    ]
    start = (
        "Enough options reduce the diffusion time, and keep it reduced as more are added, under every reading"
    )
    if not never:
        return f"{start} in every domain."
    return (
        f"{start} but these: {', '.join(never)}. With one sign, an option that leads somewhere often has "
        "none that leads back."
    )


def _equal_actions(results: Results) -> Note:
    rows = []
    for name in distinct(results["ties"], "domain"):
        y = _ties(results, name)
        row = {"domain": name}
        for m in (2, 4, 16, y.shape[1] - 1):
            if m < y.shape[1]:
                row[f"{m} options"] = f"{y[:, m].min():,.0f} to {y[:, m].max():,.0f}"
        rows.append(row)
    text = (
        "Which of two equally good actions an option takes is not in the paper; in its authors' code rounding "
        "errors of the "
        f"eigenvectors decide. Diffusion time over {len(distinct(results['ties'], 'order'))} orders of the actions:"
    )
    return text, rows


def _tolerance(results: Results) -> str:
    changed = "; ".join(
        f"{r['domain']}: {r['changed_first_64']} ends among the first 64 options and {r['changed']} among "
        f"all {r['options']}, of {r['ends']}"
        for r in results["stops"]
    )
    return (
        "The authors' code treats a value within 0.001 of zero as zero, on eigenvectors of length 1. That "
        f"changes {changed}. The mean return with 64 options (or all, if fewer) changes by at most "
        f"{_largest(results, ABSOLUTE):.3f}."
    )


def _curve(results: Results, name: str, reading: str) -> NDArray[np.float64]:
    return column(where(results["diffusion"], domain=name, reading=reading), "diffusion_time")


def _ties(results: Results, name: str) -> NDArray[np.float64]:
    rows = where(results["ties"], domain=name)
    return column(rows, "diffusion_time").reshape(len(distinct(rows, "order")), -1)


def _mean(results: Results, name: str, reading: str, n: int) -> float:
    return float(where(results["learning"], domain=name, reading=reading, options=n)[0]["mean_return"])


def _largest(results: Results, reading: str) -> float:
    """Largest change of the mean return with up to 64 options."""
    gaps = []
    for name in distinct(results["learning"], "domain"):
        counts = distinct(where(results["learning"], domain=name, reading=REPORTED), "options")
        n = max(m for m in counts if m <= 64)
        gaps.append(abs(_mean(results, name, reading, n) - _mean(results, name, REPORTED, n)))
    return max(gaps)


EXPERIMENT = Experiment(
    "variants",
    "Looking closer: other readings of the method",
    "4.2 and 4.3",
    "The paper leaves other readings open. Here Figures 6 and 7 are computed with another Laplacian, without the "
    "eigenvector of eigenvalue zero, with one sign, with the tolerance of the authors' code, in other bases of "
    "repeated "
    "eigenvalues, and with ties between actions broken in other orders (thin lines).",
    SETTINGS,
    run,
    figure,
    claims,
    notes,
    order=150,
    ours=True,
)
