"""Every rule can come out both ways, and every checkable sentence of the paper has its claim.

`EDITS` has two functions per claim that edit results: after the first the claim must hold, after the second not.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from eigenoptions.parallel import run_jobs
from reproduction import Claim, all_experiments
from reproduction.atari.claims import NAMES
from reproduction.claims import claim_order, declarations, rules, statements
from reproduction.experiment import OURS, enough, verdict
from reproduction.limits import Difference

Results = dict[str, Any]
Edit = Callable[[Results], Any]
TABULAR = [e for e in all_experiments() if not e.extra]
# Beginnings of the names of claims about games, which tests/test_paper_atari.py has on both sides, all of them.
GAMES = tuple(f"{name}-" for name in NAMES.values())


@pytest.fixture(scope="module")
def found() -> dict[str, Results]:
    return {e.name: e.run(e.settings["quick"], run_jobs) for e in TABULAR}


def put(table: str, **values: Any) -> Edit:
    """Set columns of all rows of a table; a function gets the row."""

    def edit(results: Results) -> None:
        for row in results[table]:
            row |= {k: v(row) if callable(v) else v for k, v in values.items()}

    return edit


def both(*edits: Edit) -> Edit:
    return lambda results: [edit(results) for edit in edits]


def stop_at(cells: dict[str, tuple[int, int]]) -> Edit:
    """Let options stop in these cells only."""

    def edit(results: Results) -> None:
        results["stops"] = [
            {"operator": operator, "option": label, "row": row, "column": col}
            for operator in ("normalized", "combinatorial")
            for label, (row, col) in cells.items()
        ]

    return edit


def noisy(mean: Callable[[Any], float]) -> Callable[[Any], float]:
    """Returns around a mean with little noise, which differs from row to row."""
    rng = np.random.default_rng(0)
    return lambda row: mean(row) + rng.normal(scale=1e-3)


def returns(mean: Callable[[Any], float]) -> Edit:
    return put("runs", mean_return=noisy(mean))


def sets(mean: Callable[[Any], float]) -> Edit:
    """Mean returns of random sets, in both tables, and of eigenoptions."""
    return both(returns(mean), put("many", mean_return=noisy(lambda r: mean({**r, "kind": "random"}))))


def by_set(r: Any) -> float:
    """Sets with few options differ much, those with 16 little."""
    return 0.5 + 0.1 * (-1) ** r["set"] * (r["options"] < 16) if r["kind"] == "random" else 0.9


def diffusion(random: float, own: float) -> Edit:
    """Diffusion time 100 without options, and these with some, until all but two are there."""

    def value(r: Any) -> float:
        some = random if r["kind"] == "random" else own
        return 100.0 if not r["options"] else some if r["options"] < 18 else 50.0

    return put("diffusion", diffusion_time=value)


def curve(first: float, later: float) -> Edit:
    return put(
        "diffusion",
        diffusion_time=lambda r: 100.0 if not r["options"] else first if r["options"] < 5 else later,
    )


def reached(bottleneck: float, own: float) -> Edit:
    steps = {"primitive": 100.0, "bottleneck": bottleneck, "eigenoptions": own}
    return put("reach", mean_steps=lambda r: steps[r["kind"]])


def vectors(good: bool) -> Edit:
    """Second PVF with the rooms far apart, or without any order."""

    def edit(results: Results) -> None:
        room = np.asarray(results["room"], dtype=float)
        noise = np.random.default_rng(0).normal(size=results["vectors"].shape)
        results["vectors"] = 1e-3 * noise + room[:, None] if good else noise

    return edit


def swapped(gap: float) -> Edit:
    return returns(lambda r: 0.5 + gap * (r["task"] % 2))


def agents(eigen: float, doors: float, bare: float, near: float = 0.0) -> Edit:
    """Mean return by agent; bottleneck options gain `near` where the goal is beside a doorway."""

    def edit(results: Results) -> None:
        close = {t["task"] for t in results["tasks"] if t["goal_to_doorway"] <= 1}
        by = {"eigenoptions": eigen, "bottleneck options": doors, "primitive actions": bare}
        returns(
            lambda r: by[r["agent"]] + near * (r["task"] in close and r["agent"] == "bottleneck options")
        )(results)

    return edit


def figure7(few: float, more: float, best: float) -> Edit:
    by = {0: 0.5, 2: few, 16: more, 38: best, 64: best}
    return returns(lambda r: by[r["options"]])


def walked(**by: float) -> Edit:
    """Columns of sets of walks: one value with options, another without."""
    return put("sets", **{k: (lambda r, v=v: v if r["kind"] != "primitive" else 0.5) for k, v in by.items()})


def shares(few: float, many: float) -> Edit:
    return put(
        "sets", effective_states=lambda r: 1.0 if not r["options"] else few if r["options"] < 5 else many
    )


CORNERS = {"e2+": (1, 1), "e2-": (10, 10), "e3+": (1, 10), "e3-": (10, 1)}
ROOMS = {f"e{i}{s}": (2, 2) for i in (2, 3, 4) for s in "+-"}
DOORWAY = (3, 6)
EDITS: dict[str, tuple[Edit, Edit]] = {
    "domains": (put("domains", actions=4), put("domains", actions=5)),
    "walls": (put("domains", of_these_stay=9, moves_into_walls=9), put("domains", of_these_stay=0)),
    "pvf-rooms": (vectors(True), vectors(False)),
    "opposite-room": (stop_at({"e2+": (2, 10), "e2-": (10, 2)}), stop_at({"e2+": (2, 10), "e2-": (2, 10)})),
    "peak-centre": (stop_at({"e2+": (4, 9), "e2-": (4, 9)}), stop_at({"e2+": (11, 1), "e2-": (11, 1)})),
    "peak-corner": (stop_at({"e2+": (1, 11), "e2-": (1, 11)}), stop_at({"e2+": (11, 1), "e2-": (11, 1)})),
    "theorem-3.1": (lambda r: None, put("options", n_stops=0, mean_length=np.inf)),
    "stops-at-maxima": (lambda r: None, put("facts", stops_at_maxima=0, stop_at_the_highest=0)),
    "dense-reward": (put("facts", dense=1.0), put("facts", dense=0.5)),
    "discount-timescale": (
        put("options", mean_length=lambda r: 1 + r["gamma"]),
        put("options", mean_length=1.0),
    ),
    "multiple-options": (lambda r: None, put("facts", fewest_in_a_state=1, fewest_of_few=1)),
    "frequencies": (
        put("options", mean_length=lambda r: 9.0 if r["option"] == "e2+" else 1.0),
        put("options", mean_length=5.0),
    ),
    "whole-state-space": (put("options", start_share=0.95), put("options", start_share=0.5)),
    "theorem-3.1-any-mdp": (lambda r: None, put("mdps", fewest_stops=0)),
    "theorem-3.1-linear": (lambda r: None, put("mdps", fewest_stops=0)),
    "lemma-3.1": (put("edge", bound=9.0), put("norms", lemma_3_1=1e9)),
    "lemma-3.2": (lambda r: None, put("norms", lemma_3_2=1e9)),
    "proof-bound": (lambda r: None, put("mdps", ratio=1.1)),
    "corners": (stop_at(CORNERS), stop_at(dict.fromkeys(CORNERS, (5, 5)))),
    "twice-as-often": (
        put(
            "options",
            n_stops=lambda r: 1 + (r["option"] == "e4+"),
            mean_length=lambda r: 2.0 - (r["option"] == "e4+"),
        ),
        put("options", n_stops=1, mean_length=1.0),
    ),
    "corridor": (lambda r: None, stop_at({"e2+": (1, 1), "e2-": (1, 1)})),
    "fifth-is-first-doorway": (stop_at(ROOMS | {"e5+": DOORWAY}), stop_at(ROOMS | {"e2+": DOORWAY})),
    "first-to-rooms": (stop_at(ROOMS), stop_at(dict.fromkeys(ROOMS, DOORWAY))),
    "first-options-hurt": (curve(200, 40), curve(90, 40)),
    "enough-options-help": (curve(200, 40), curve(200, 90)),
    "bottlenecks-increase": (curve(200, 200), curve(90, 90)),
    "corners-less-likely": (reached(200, 50), reached(90, 50)),
    "mitigated": (reached(200, 50), reached(200, 300)),
    "dynamic-programming": (lambda r: None, put("dynamic_programming", swept=1.0)),
    "larger-distances": (
        put("walks", farthest=noisy(lambda r: 9.0 if r["options"] else 2.0)),
        put("walks", farthest=noisy(lambda r: 2.0)),
    ),
    "skewed-time": (shares(0.5, 0.9), shares(1.0, 0.9)),
    "bias-with-few": (shares(0.5, 0.9), shares(0.9, 0.5)),
    "diffusion-implies-coverage": (
        put("sets", diffusion_time=lambda r: r["options"], seen_in_1000=lambda r: -r["options"]),
        put("sets", diffusion_time=lambda r: r["options"], seen_in_1000=lambda r: r["options"]),
    ),
    "between-rooms": (
        walked(room_changes_per_1000=0.9, time_inside=0.1),
        walked(room_changes_per_1000=0.1, time_inside=0.9),
    ),
    "whole-environment": (
        put("walks", steps_to_all=lambda r: 100.0 if r["kind"] == "primitive" else np.inf),
        put("walks", steps_to_all=100.0),
    ),
    "most-scenarios": (figure7(0.9, 0.9, 0.9), figure7(0.1, 0.1, 0.1)),
    "exceptions-few": (figure7(0.2, 0.8, 0.9), figure7(0.9, 0.9, 0.9)),
    "few-hurt-enough-help": (figure7(0.2, 0.8, 0.9), figure7(0.5, 0.5, 0.5)),
    "best-64": (figure7(0.2, 0.8, 0.9), figure7(0.2, 0.95, 0.9)),
    "robust": (figure7(0.2, 0.85, 0.9), figure7(0.2, 0.3, 0.9)),
    "closest-doorway": (lambda r: None, both(put("starts", steps=99), put("rooms", states=1))),
    "doorways-most-visited": (
        put("betweenness", betweenness=lambda r: -r["steps_to_doorway"]),
        put("betweenness", betweenness=lambda r: r["steps_to_doorway"]),
    ),
    "planning-not-exploration": (
        put("planning", sweeps_to_a_plan=lambda r: r["choices"] == "primitive actions"),
        put("planning", sweeps_to_a_plan=1.0, diffusion_time=1.0),
    ),
    "random-fail-to-reduce": (diffusion(1e6, 50), diffusion(50, 50)),
    "orders-of-magnitude": (diffusion(1e6, 50), diffusion(200, 50)),
    "more-than-random-states": (diffusion(1e6, 50), diffusion(40, 50)),
    "no-run-competitive": (sets(lambda r: 0.9 - 0.5 * (r["kind"] == "random")), sets(lambda r: 0.5)),
    "random-not-competitive": (sets(lambda r: 0.9 - 0.5 * (r["kind"] == "random")), sets(lambda r: 0.5)),
    "fewer-options-vary": (
        sets(by_set),
        sets(lambda r: 0.5 + 0.1 * (-1) ** r.get("set", 0) * (r["options"] >= 16)),
    ),
    "near-goal-matters": (
        both(
            put("many", steps_to_goal=lambda r: 9 * (r["set"] % 2)),
            put("many", mean_return=noisy(lambda r: 0.9 - 0.5 * (r["set"] % 2))),
        ),
        both(
            put("many", steps_to_goal=lambda r: 9 * (r["set"] % 2)),
            put("many", mean_return=noisy(lambda r: 0.5)),
        ),
    ),
    "never-learns": (put("runs", late_return=0.0), put("runs", late_return=1.0)),
    "order-matters": (
        put("diffusion", diffusion_time=lambda r: 10.0 if r["kind"] == "eigenoptions" else 100.0),
        put("diffusion", diffusion_time=10.0),
    ),
    "bottlenecks-hinder-learning": (agents(0.9, 0.1, 0.5), agents(0.9, 0.8, 0.5)),
    "swap-no-effect": (swapped(0.01), swapped(0.3)),
    "outperform-primitive": (agents(0.9, 0.5, 0.1), agents(0.1, 0.5, 0.9)),
    "not-all-regions": (put("ends", ends_of_options=9), put("ends", ends_of_options=lambda r: r["states"])),
    "outperform-bottlenecks-far": (agents(0.9, 0.5, 0.1), agents(0.1, 0.5, 0.9)),
    "bottlenecks-competitive-near": (agents(0.9, 0.5, 0.1, 0.3), agents(0.9, 0.5, 0.1, -0.3)),
    "lemma-5.1": (lambda r: None, put("exact", lemma_error=1.0)),
    "theorem-5.1": (lambda r: None, put("exact", residual=1.0)),
    "same-options": (lambda r: None, put("exact", same_options=1)),
    "asymptotic": (put("sampled", transitions_seen=1.0, same_policy=1.0), put("sampled", same_policy=0.5)),
    "fewer-transitions": (
        put("exact", undirected=8, transitions=16),
        put("exact", undirected=88, transitions=99),
    ),
    "same-set-many-tasks": (
        put("goals", mean_return=noisy(lambda r: 0.9 if r["options"] else 0.1)),
        put("goals", mean_return=noisy(lambda r: 0.1 if r["options"] else 0.9)),
    ),
}


def judged(experiment: Any, results: Results) -> dict[str, Claim]:
    return {claim.id: claim for claim in experiment.claims(results)}


@pytest.mark.parametrize("experiment", TABULAR, ids=lambda e: e.name)
def test_every_rule_comes_out_both_ways(experiment, found):
    for name in judged(experiment, found[experiment.name]):
        for edit, wanted in zip(EDITS[name], ({"holds"}, {"does not hold"}), strict=True):
            results = copy.deepcopy(found[experiment.name])
            edit(results)
            claim = judged(experiment, results)[name]
            assert claim.verdict in wanted, (name, claim)


def test_the_edits_are_those_of_the_claims(found):
    names = [name for e in TABULAR for name in judged(e, found[e.name])]
    assert len(set(names)) == len(names)
    assert set(names) == set(EDITS)


def test_every_checkable_sentence_has_its_claim():
    listed = {name for s in statements() for name in s.claims}
    assert {name for name in listed if not name.startswith(GAMES)} == set(EDITS)
    assert claim_order()[0] in listed
    for s in statements():
        assert bool(s.claims) != bool(s.why), s


def test_every_declared_claim_is_judged():
    """Those about any game have no name of their own; that about bytes is ours."""
    listed = {name for s in statements() for name in s.claims if not name.endswith("-intent")}
    assert set(declarations()["claim"]) == listed | {"intent", "against-random", "freeway-bytes"}


def test_the_list_has_every_sentence_of_the_paper():
    text = (files("reproduction") / "statements.toml").read_text(encoding="utf-8")
    counts = {section["name"]: section["sentences"] for section in tomllib.loads(text)["section"]}
    assert sum(counts.values()) == 403
    for section, many in counts.items():
        assert sum(s.sentences for s in statements() if s.section == section) == many
    assert list(dict.fromkeys(s.section for s in statements())) == list(counts)


def test_changed_rules_name_their_claims():
    known = {name for s in statements() for name in s.claims} | {"all"}
    for change in rules()["changes"]:
        assert change["date"] == "2026-11-16"
        assert set(change["claim"].split(", ")) <= known
        assert change["change"]
        assert change["reason"]


def test_margins():
    assert [enough([True, None, False], n) for n in (1, 2, 3)] == [True, None, False]
    assert verdict(Difference(0.02, -0.01, 0.04).above()) == "does not hold"
    assert verdict(Difference(0.02, -0.01, 0.06).above()) == "not decided"
    assert verdict(Difference(0.02, 0.01, 0.04).equal()) == "holds"
    assert verdict((-Difference(0.2, 0.1, 0.3)).equal()) == "does not hold"
    assert OURS not in {s.section for s in statements()}
