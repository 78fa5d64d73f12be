"""The commands that measure: diffusion times, learning, and the demo."""

from __future__ import annotations

import json
import re

import pytest

import eigenoptions as eo
from eigenoptions.discovery.methods import method as declared
from eigenoptions.discovery.methods import methods
from eigenoptions.evaluation import diffusion_curve, hitting_times
from eigenoptions.learning import q_learning
from tests.test_cli import refused, run


def test_diffusion_shows_the_curve(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "diffusion", "four-rooms", "-n", "3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[0] == "four-rooms: 104 states; 3 eigen options, normalized Laplacian, gamma 0.9"
    rows = [line.split() for line in lines[2:7]]
    assert rows[0] == ["options", "added", "diffusion", "time", "of", "0", "options"]
    assert rows[1] == ["0", "620.8", "100%"]
    assert [row[:2] for row in rows[2:]] == [["1", "e2+"], ["2", "e2-"], ["3", "e3+"]]
    assert re.fullmatch("[▁▂▃▄▅▆▇█]{4}  0 to 3 options, logarithmic", lines[8])
    assert "A rise is expected" in lines[9]
    assert lines[-1] == "next: eigenoptions learn four-rooms -n 3"
    # 18 of 36 options, and none
    table = run(capsys, "diffusion", "i-maze")[1].split("\n\n")[1]
    assert len(table.splitlines()) == 20


def test_a_narrow_terminal_cuts_nothing_off(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = run(capsys, "diffusion", "i-maze", "-n", "2")[1]
    assert "…" not in out
    assert "diffusion time  of 0 options" in out


@pytest.mark.parametrize("method", [name for name in methods() if not declared(name).needs_rewards])
def test_diffusion_is_what_the_library_says(method, capsys):
    found = json.loads(run(capsys, "diffusion", "four-rooms", "-n", "3", "--method", method, "--json")[1])
    options = eo.discover(eo.maze("four-rooms"), 3, method)
    curve = diffusion_curve(eo.maze("four-rooms"), options)
    assert [row["diffusion_time"] for row in found["curve"]] == curve.tolist()
    assert [row["added"] for row in found["curve"]] == ["", *options.labels]
    assert found["settings"]["option_gamma"] == options.provenance["gamma"]
    assert found["settings"]["n_options"] == 3


def test_the_chance_of_an_option(capsys):
    mdp = eo.maze("i-maze")
    chance = ("--option-chance", "0.1")
    found = json.loads(run(capsys, "diffusion", "i-maze", "-n", "4", *chance, "--json")[1])
    curve = diffusion_curve(mdp, eo.discover(mdp, 4), option_chance=0.1)
    assert [row["diffusion_time"] for row in found["curve"]] == curve.tolist()
    assert found["settings"]["option_chance"] == 0.1
    assert "chance 0.1" in run(capsys, "diffusion", "i-maze", "-n", "4", *chance)[1]
    args = ("-n", "4", "--runs", "3", "--episodes", "5")
    found = json.loads(run(capsys, "learn", "i-maze", *args, *chance, "--json")[1])
    record = q_learning(mdp, eo.discover(mdp, 4), runs=3, episodes=5, option_chance=0.1)
    assert found["agents"][1]["curve"] == record.mean().tolist()


def test_diffusion_writes_table_and_pictures(capsys, tmp_path):
    args = ("diffusion", "i-maze", "-n", "4", "--no-skip-zero", "--out", str(tmp_path / "new"))
    code, out, _ = run(capsys, *args, "--json")
    assert code == 0
    names = ["diffusion.csv", "diffusion.svg", "reach.svg"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == names
    assert json.loads(out)["files"] == [str(tmp_path / "new" / name) for name in names]
    lines = (tmp_path / "new" / "diffusion.csv").read_text().splitlines()
    assert lines[0] == "options,added,diffusion_time"
    assert lines[2].startswith("1,e1+,")
    mdp = eo.maze("i-maze")
    last = hitting_times(mdp, eo.discover(mdp, 4, skip_zero=False)).sum() / (19 * 18)
    assert float(lines[-1].split(",")[2]) == pytest.approx(last)
    assert f"wrote {tmp_path / 'new' / 'reach.svg'}" in run(capsys, *args)[1].splitlines()


def test_learn_compares_agents(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "learn", "i-maze", "--runs", "3", "--episodes", "40")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "i-maze: 19 states; 18 eigen options, normalized Laplacian, gamma 0.9"
    assert lines[1] == "3 runs of 40 episodes from (15, 1) to (1, 3)"
    assert [line.split("  ")[0] for line in lines[4:7]] == ["primitive actions", "8 options", "18 options"]
    assert set(lines[4].split()[-1]) <= set("▁▂▃▄▅▆▇█")
    assert len(lines[4].split()[-1]) == 32
    assert lines[-1] == "next: eigenoptions discover i-maze -n 18"


def test_measures_take_mazes_only(capsys):
    assert "this command takes a maze, got the environment FrozenLake-v1" in refused(
        capsys, "diffusion", "FrozenLake-v1"
    )
    said = refused(capsys, "learn", "rooms:1x2")
    assert "rooms:1x2 has no start and no goal: give --start ROW,COL and --goal ROW,COL" in said


def test_the_demo_shows_a_run_and_what_options_are_worth(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("eigenoptions.cli.demo.SECONDS_PER_STEP", 0.0)
    code, out, err = run(capsys, "demo")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"4 actions +█+ 620\.8\n +and 64 eigenoptions █+▏? 218\.4\n", out)
    assert "next: eigenoptions discover four-rooms" in out
    found = json.loads(run(capsys, "demo", "--json")[1])
    mdp, label, path = eo.maze("four-rooms"), found["option"], found["path"]
    assert path[0] == mdp.start
    option = eo.discover(mdp, 4)[label]
    assert [int(mdp.successors[s, option.act(s)]) for s in path[:-1]] == path[1:]
    assert option.act(path[-1]) == eo.TERMINATE
    (shown,) = re.findall(rf"{re.escape(label)} runs from S for {len(path) - 1} steps: (\S+)", out)
    assert shown == "".join("↑→↓←"[option.act(s)] for s in path[:-1]) + "●"
    assert found["diffusion_time"]["without_options"] == pytest.approx(620.769, abs=1e-3)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = run(capsys, "demo")[1]
    assert f"{len(path) - 1} of {len(path) - 1} steps from S" in out
    # Yellow is the trail of the run, red where the option stops.
    assert "48;2;255;221;51m" in out
    assert "48;2;215;38;61m" in out


def test_learn_is_what_the_library_says(capsys):
    args = ("--runs", "13", "--episodes", "20", "--max-steps", "60", "--rng", "4", "--alpha", "0.2")
    code, out, _ = run(capsys, "learn", "four-rooms", "-n", "4,2", *args, "--gamma", "0.8", "--json")
    assert code == 0
    found = json.loads(out)
    assert [agent["options"] for agent in found["agents"]] == [0, 2, 4]
    mdp = eo.maze("four-rooms")
    how = {"runs": 13, "episodes": 20, "max_steps": 60, "rng": 4, "alpha": 0.2, "gamma": 0.8}
    record = q_learning(mdp, eo.discover(mdp, 4), **how)
    assert found["agents"][2]["curve"] == record.mean().tolist()
    assert found["agents"][2]["mean_return"] == record.returns.mean()
    assert found["agents"][2]["last_return"] == record.returns[:, -2:].mean()
    assert (found["start"], found["goal"], found["settings"]["runs"]) == (94, 9, 13)


def test_learn_takes_cells_and_states_as_start_and_goal(capsys):
    quick = ("--runs", "2", "--episodes", "2", "-n", "0", "--json")
    found = json.loads(run(capsys, "learn", "four-rooms", "--start", "1,1", "--goal", "50", *quick)[1])
    assert (found["start"], found["goal"]) == (0, 50)
    found = json.loads(run(capsys, "learn", "four-rooms", "--method", "bottleneck", *quick[:4], "--json")[1])
    assert [agent["options"] for agent in found["agents"]] == [0, 4]


def test_learn_writes_table_and_picture(capsys, tmp_path):
    args = ("learn", "i-maze", "-n", "2", "--runs", "2", "--episodes", "5", "--out", str(tmp_path / "new"))
    assert f"wrote {tmp_path / 'new' / 'learning.svg'}" in run(capsys, *args)[1].splitlines()
    rows = [line.split(",") for line in (tmp_path / "new" / "learning.csv").read_text().splitlines()]
    assert rows[0] == ["options", "episode", "return", "low", "high"]
    assert [(r[0], r[1]) for r in rows[1:]] == [(n, str(e)) for n in "02" for e in range(1, 6)]
