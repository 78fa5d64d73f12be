"""The arena: domains on which everything can be measured, measures that agree with the library's, and one page."""

from __future__ import annotations

import json
import re
from math import inf, isnan, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.cli import main
from eigenoptions.mdp import reachable
from reproduction.arena import contests
from reproduction.arena.domains import COSTLY, DOMAINS, build
from reproduction.arena.jobs import cover, measure
from reproduction.arena.methods import CONTEST
from reproduction.arena.pictures import option_map
from reproduction.arena.ranking import MEASURES, character, diffusion, ranking, returns

SMALL = {
    "counts": [2, 4],
    "learn": [4],
    "exact_states": 500,
    "goals": 3,
    "runs": 2,
    "episodes": 10,
    "seed": 0,
}
ONLINE = {"seeds": [0, 1], "online": 4, "chance": 0.05, "longest": 200}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_state_of_a_domain_reaches_every_other(name: str) -> None:
    mdp = build(name)
    assert mdp.start is not None
    assert mdp.goal is None
    assert reachable(mdp.transition, [mdp.start]).all()
    assert reachable(mdp.transition, [mdp.start], backward=True).all()
    assert mdp.reward is not None
    assert set(np.unique(mdp.reward)) == ({COSTLY, -1.0} if name == "costly" else {-1.0})


def test_moves_of_the_special_domains() -> None:
    plain, one_way, slippery = (build(name) for name in ("four-rooms", "one-way", "slippery"))
    assert plain.successors is not None
    assert one_way.successors is not None
    assert (plain.successors != one_way.successors).sum() == 4
    assert_allclose(np.asarray(slippery.transition.sum(axis=1)).ravel(), 1.0)
    # Up with probability 0.8, and a random direction otherwise.
    row = slippery.transition[[4 * 50]].toarray().ravel()
    moves = plain.successors[50]
    assert_allclose(row[moves[0]], 0.8 + 0.2 * (moves == moves[0]).mean())


def test_measures_are_those_of_the_library() -> None:
    mdp = build("i-maze")
    none = measure({**SMALL, "domain": "i-maze", "method": "none"})
    assert_allclose(none["rows"][0]["best"], 246.2222, atol=1e-3)
    found = measure({**SMALL, "domain": "i-maze", "method": "eigen"})
    options = eo.discover(mdp, 4)
    row = found["rows"][1]
    assert row["n"] == 4
    assert row["uniform"] == eo.diffusion_time(mdp, options)
    assert row["best"] <= min(row["uniform"], none["rows"][0]["best"])
    assert_allclose(eo.diffusion_time(mdp, options, option_chance=row["chance"]), row["best"])
    assert row["length"] == options.mean_length.mean()
    assert row["ends"] == len(set(np.flatnonzero(options.termination.any(axis=0)).tolist()))
    np.testing.assert_array_equal(found["policy"], options.policy)
    assert {(r["n"], r["how"]) for r in found["learning"]} == {(4, "uniform"), (4, "best")}


def test_a_method_gives_what_it_has() -> None:
    found = measure({**SMALL, "counts": [2, 64], "domain": "i-maze", "method": "bottleneck", "learn": []})
    assert [row["n"] for row in found["rows"]] == [2]
    refused = measure({**SMALL, "domain": "open-room", "method": "bottleneck"})
    assert refused["rows"] == []
    assert "no doorway was found" in refused["refused"]
    large = measure({**SMALL, "domain": "rooms-5x5", "method": "covering-eigen"})
    assert large["refused"] == "more than 1,000 states"
    assert measure({**SMALL, "seed": 1, "domain": "i-maze", "method": "eigen"})["same"]
    assert not measure({**SMALL, "seed": 1, "domain": "i-maze", "method": "random", "learn": []})["same"]


def test_options_pay_what_they_pass() -> None:
    """Options between cheap states cost at least 1 per step; those that know of the costs, less than others."""
    job = {**SMALL, "counts": [8], "domain": "costly", "learn": [], "exact_states": 0}
    job |= {"walks": 2, "walk_steps": 1000, "chances": [0.1]}
    paid = {name: -measure({**job, "method": name})["rows"][0]["cost"] for name in ("eigen", "reward-aware")}
    assert 1.0 <= paid["reward-aware"] < paid["eigen"]


@pytest.mark.parametrize("name", ["none", "covering", "random", "covering-eigen", "reward-aware"])
def test_every_state_is_seen_in_the_end(name: str) -> None:
    steps = cover({**ONLINE, "domain": "i-maze", "method": name})
    assert len(steps) == 2
    assert all(19 <= x < inf for x in steps)
    assert steps == cover({**ONLINE, "domain": "i-maze", "method": name})
    assert cover({**ONLINE, "domain": "i-maze", "method": name, "longest": 1})[0] in (inf, steps[0])


def contest_of_three() -> dict[str, Any]:
    """Two methods on two domains: `a` is better on the first and has no options on the second, `b` is worse."""

    def row(method: str, domain: str, n: int, best: float, seed: int = 0) -> dict[str, Any]:
        rest = dict.fromkeys(("low", "high", "cost"), nan)
        about = {
            "length": 3.0,
            "stops": 1.0,
            "ends": 2,
            "starts": 0.5,
            "note": "" if best == best else "never",
        }
        return {
            "method": method,
            "domain": domain,
            "seed": seed,
            "n": n,
            "best": best,
            "uniform": best,
            **rest,
            **about,
        }

    rows = [row("none", "x", 0, 10.0), row("none", "y", 0, 10.0), row("a", "x", 4, 5.0)]
    rows += [row("b", "x", 8, value, seed) for seed, value in enumerate((30.0, 20.0, 40.0))]
    rows += [row("b", "y", 8, nan)]
    learning = [
        {"method": "a", "domain": "x", "seed": 0, "n": 4, "how": "best", "run": i, "mean_return": v}
        for i, v in enumerate((0.5, 0.7))
    ]
    found = {"methods": ["none", "a", "b"], "domains": ["x", "y"], "rows": rows, "learning": learning}
    refused = {"method": "a", "domain": "y", "seed": 0, "refused": "no doorway", "seconds": nan, "states": 3}
    return {**found, "online": [], "discovery": [refused], "pictures": {}}


def test_ranks_and_words() -> None:
    results = contest_of_three()
    values = diffusion(results, 8, "best")
    assert values["b", "x"].mean == 30.0
    assert (values["b", "x"].low, values["b", "x"].high) == (20.0, 40.0)
    assert values["b", "y"].mean == inf
    assert ("a", "y") not in values
    # On y, `a` counts as none and shares its rank.
    order = ranking(results, MEASURES[0])
    assert [(name, rank) for name, rank, _ in order] == [("a", 1.25), ("none", 1.75), ("b", 3.0)]
    assert order[0][2] == 0.5
    assert isnan(order[2][2])
    assert returns(results, 8, "best")["a", "x"].mean == pytest.approx(0.6)
    good = " ".join(character(results, "a"))
    assert "Good: diffusion time, 8 options (1st of 3, 0.5 times" in good
    assert "No options: y (no doorway)." in good
    assert "worse than no options" in " ".join(character(results, "b"))


def test_maps_have_one_arrow_per_state(four_rooms: eo.MDP) -> None:
    options = eo.discover(four_rooms, 1)
    stops = np.flatnonzero(options[0].termination)
    drawn = option_map(four_rooms, options.policy[0], "<e2+>")
    paths = re.findall(r' d="([^"]*)"', drawn)
    assert [path.count("M") for path in paths] == [104, 0, len(stops), 104 - len(stops)]
    assert "&lt;e2+&gt;" in drawn


def test_a_run_is_stored_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "arena"
    command = ["arena", "--quick", "--methods", "eigen,random", "--domains", "i-maze", "--engine", "serial"]
    assert main([*command, "--out", str(out), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["methods"] == ["eigen", "random"]
    assert {row["method"] for row in first["ranking"]["diffusion time, 8 options"]} == {
        "none",
        "eigen",
        "random",
    }
    assert first["files"] == [str(out / "index.html")]
    html = (out / "index.html").read_text()
    assert html.count('class="maps"') == 2
    assert "http://" not in html.replace("http://www.w3.org/", "")
    done = []
    report = CONTEST.run(
        out,
        "quick",
        ["eigen"],
        ["i-maze"],
        progress=lambda d, total: done.append((d, total)),
    )
    # Everything was stored, so nothing is computed.
    assert done[0] == (3, 3)
    assert report.data["ranking"].keys() == first["ranking"].keys()
    # The page does not change with the order in which jobs arrive.
    assert (out / "data" / "rows.csv").read_text().count("\n") == 1 + 1 + 3


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, words in (
        (["--methods", "eigne"], "method must be one of"),
        (["--domains", "five-rooms"], "domain must be one of"),
        (["fights"], "contest must be one of"),
    ):
        assert main(["arena", *flags, "--out", str(tmp_path / "new")]) == 2
        assert words in capsys.readouterr().err
    (tmp_path / "letter.txt").write_text("mine")
    assert main(["arena", "--out", str(tmp_path)]) == 2
    assert "has other content than an arena" in capsys.readouterr().err
    assert main(["arena", "--out", str(tmp_path / "letter.txt")]) == 2
    assert "it is a file" in capsys.readouterr().err


def test_an_interrupt_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.arena.methods.measure", interrupted)
    interrupted.__module__, interrupted.__qualname__ = "reproduction.arena.jobs", "measure"
    assert (
        main(["arena", "--quick", "--domains", "i-maze", "--engine", "serial", "--out", str(tmp_path)]) == 130
    )
    error = capsys.readouterr().err
    assert error.startswith("stopped: 0 jobs finished and kept in")
    assert error.count("\n") == 1


def test_the_arena_is_no_experiment_of_the_paper() -> None:
    assert next(iter(contests())) == "methods"


def test_every_contest_has_a_folder_of_its_own(monkeypatch, capsys) -> None:
    folders = []

    def contest(name: str) -> Any:
        def run(out: Path, *_: Any, **__: Any) -> None:
            folders.append(str(out))
            raise ValueError("as far as that")

        return SimpleNamespace(run=run)

    monkeypatch.setattr("reproduction.arena.contest", contest)
    for given in ([], ["agents"], ["--out", "other"]):
        assert main(["arena", *given]) == 2
        assert "as far as that" in capsys.readouterr().err
    assert folders == ["arena", "arena-agents", "other"]
