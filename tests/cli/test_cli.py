"""The command line: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.cli import commands, main
from eigenoptions.cli.maps import draw_cells
from eigenoptions.cli.program import load_commands, make_parser
from eigenoptions.mdp.mazes import open_map
from eigenoptions.studio import write_studio
from eigenoptions.studio.server import make_server

COMMAND = [sys.executable, "-m", "eigenoptions"]


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    try:
        code = main(shlex.split(line))
    except SystemExit as stop:
        # The way out of --help.
        code = int(stop.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def read_json(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, Any]:
    """The one JSON object that a command prints."""
    code, out, err = run(capsys, f"{line} --json")
    assert err == ""
    assert code == 0
    assert out.count("\n") == 1
    answer: dict[str, Any] = json.loads(out)
    return answer


def read_error(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """The one line of a command that is refused; notes may precede it."""
    code, out, err = run(capsys, line)
    *notes, error = err.splitlines()
    assert code == 2
    assert out == ""
    assert error.startswith("error: ")
    assert all(note.startswith("note: ") for note in notes)
    return error


def test_discover_prints_maps_a_table_and_the_next_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "discover four-rooms -n 4")
    assert err == ""
    assert code == 0
    assert "\x1b" not in out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("four-rooms: 104 states; 4 options, method eigen")
    assert lines[2].split() == ["e2+", "e2-", "e3+", "e3-"]
    assert lines[4].rstrip() == "  ".join(["█" * 13] * 4)
    words = [line.split() for line in lines]
    assert ["e3+", "0.0084952", "(2,", "2)", "8.72", "99%"] in words
    assert lines[-1] == "next: eigenoptions diffusion four-rooms -n 4"


@pytest.mark.parametrize(("width", "maps"), [(30, 2), (70, 4)])
def test_discover_prints_as_many_maps_per_row_as_fit(capsys, monkeypatch, width, maps):
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = run(capsys, "discover four-rooms -n 4")
    first_labels = out.splitlines()[2]
    assert first_labels.count("e") == maps


def test_discover_json_holds_the_options(capsys):
    answer = read_json(
        capsys, "discover i-maze -n 3 --gamma 0.95 --operator combinatorial --seed 5"
    )
    options = eo.discover("i-maze", 3, gamma=0.95, operator="combinatorial")
    rows = answer["options"]
    settings = {"n_options": 3, "gamma": 0.95, "seed": 5}
    assert answer["settings"].items() >= settings.items()
    assert [row["label"] for row in rows] == list(options.labels)
    assert [row["sign"] for row in rows] == ["+", "-", "+"]
    assert [row["eigenvalue"] for row in rows] == options.eigenvalues.tolist()
    assert [row["mean_length"] for row in rows] == options.mean_length.tolist()
    for row, option in zip(rows, options, strict=True):
        assert row["stop_states"] == np.flatnonzero(option.termination).tolist()
        assert row["stops"] == options.mdp.coords[option.termination].tolist()


@pytest.mark.parametrize(
    ("method", "label"), [("bottleneck", "room 1"), ("random", "goal 86")]
)
def test_discover_takes_every_method(capsys, method, label):
    answer = read_json(capsys, f"discover four-rooms --method {method}")
    first = answer["options"][0]
    assert first["label"] == label
    assert first["sign"] is None
    assert first["eigenvalue"] is None


def test_discover_out_writes_options_and_figures_that_show_reads(capsys, tmp_path):
    folder = tmp_path / "new" / "out"
    answer = read_json(capsys, f"discover four-rooms -n 4 --out {folder}")
    names = ["options.safetensors", "options.svg", "eigenvectors.svg"]
    assert answer["files"] == [str(folder / name) for name in names]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)

    rooms = eo.maze("four-rooms")
    saved = eo.load_options(folder / "options.safetensors", rooms)
    np.testing.assert_array_equal(saved.policy, eo.discover(rooms, 4).policy)

    show = f"show {folder}/options.safetensors"
    assert read_json(capsys, show)["options"] == answer["options"]
    _, out, _ = run(capsys, show)
    assert "load_options" in out.splitlines()[-1]


def test_show_lists_options_without_coordinates(capsys, tmp_path):
    ring = eo.MDP(np.roll(np.eye(6), 1, axis=1))
    options = eo.solve(ring, [eo.Purpose(np.arange(6.0), "up")])
    options.save(tmp_path / "ring.safetensors")
    code, out, _ = run(capsys, f"show {tmp_path}/ring.safetensors")
    assert code == 0
    assert any(line.split()[:2] == ["up", "5"] for line in out.splitlines())


def test_discover_reads_maps_rules_and_environments(capsys, tmp_path):
    (tmp_path / "corridor.txt").write_text("S...G\n")
    corridor = read_json(
        capsys, f"discover {tmp_path}/corridor.txt -n 2 --operator combinatorial"
    )
    assert sorted(row["stops"] for row in corridor["options"]) == [[[0, 0]], [[0, 4]]]
    assert read_json(capsys, "discover rooms:3x3 -n 2 --seed 3")["states"] == 912
    assert read_json(capsys, "discover FrozenLake-v1 -n 2")["states"] == 16
    sampled = read_json(capsys, "discover i-maze -n 2 --steps 3000")
    assert sampled["states"] == 19
    assert len(sampled["options"]) == 2


def test_discover_of_continuous_observations_samples_and_saves(capsys, tmp_path):
    line = "discover MountainCar-v0 -n 2 --steps 2000 --features fourier"
    answer = read_json(capsys, f"{line} --out {tmp_path}")
    assert [row["label"] for row in answer["options"]] == ["e2+", "e2-"]
    assert answer["files"] == [str(tmp_path / "options.safetensors")]
    code, out, _ = run(capsys, f"show {tmp_path}/options.safetensors")
    assert code == 0
    assert "e2-" in out


def test_discover_colours_maps_where_the_terminal_can(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = run(capsys, "discover i-maze -n 2")[1]
    assert "blue to orange" in out
    assert "\x1b[" in out


def test_discover_says_that_maps_of_large_mazes_are_coarser(capsys):
    code, out, _ = run(capsys, "discover open:60x2 -n 2")
    assert code == 0
    assert "one of 2 rows" in out
    assert "--out" in out
    assert 30 <= sum("█" in line for line in out.splitlines()) <= 40


def test_notes_of_the_library_are_printed_once_on_standard_error(capsys, tmp_path):
    (tmp_path / "split.txt").write_text("...#....\n...#....\n")
    code, out, err = run(capsys, f"discover {tmp_path}/split.txt -n 2 --json")
    assert code == 0
    assert json.loads(out)["states"] == 14
    assert err.startswith("note: ")
    assert err.count("components") == 1


def test_mazes_are_listed_with_maps(capsys):
    code, out, _ = run(capsys, "mazes")
    assert code == 0
    assert out.splitlines()[0].split() == eo.mazes()
    for listed in read_json(capsys, "mazes")["mazes"]:
        mdp = eo.maze(listed["name"])
        assert eo.maze(listed["map"]).fingerprint == mdp.fingerprint
        assert listed["states"] == mdp.n_states


def test_diffusion_shows_a_setting_that_helps_beside_the_uniform_choice(capsys):
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, 4)
    rows = read_json(capsys, "diffusion four-rooms -n 4")["curve"]
    assert rows[-1]["uniform"] == pytest.approx(eo.diffusion_time(rooms, options))
    assert all(row["diffusion_time"] < 0.8 * rows[0]["uniform"] for row in rows[1:])
    out = run(capsys, "diffusion four-rooms -n 4 --gamma 0.9")[1]
    assert f"{rows[-1]['uniform']:,.1f}" in out
    assert f"{rows[-1]['diffusion_time']:,.1f}" in out
    assert out.splitlines()[-1].endswith(
        "learn four-rooms -n 4 --gamma 0.9 --option-chance auto"
    )


def test_diffusion_json_is_the_curve(capsys, tmp_path):
    maze = eo.maze("i-maze")
    options = eo.discover(maze, 3)
    line = "diffusion i-maze -n 3 --option-chance 0.2 --stop-chance 0.1"
    rows = read_json(capsys, f"{line} --out {tmp_path}")["curve"]
    counts = [row["options"] for row in rows]
    assert counts == [0, 2, 3]

    uniform = eo.diffusion_curve(maze, options)
    curve = eo.diffusion_curve(maze, options, option_chance=0.2, stop_chance=0.1)
    np.testing.assert_allclose([row["uniform"] for row in rows], uniform[counts])
    np.testing.assert_allclose([row["diffusion_time"] for row in rows], curve[counts])

    saved = json.loads((tmp_path / "diffusion.json").read_text())
    assert saved["curve"] == rows
    assert (tmp_path / "diffusion.svg").is_file()


def test_diffusion_of_large_mazes_is_estimated(capsys):
    rows = read_json(capsys, "diffusion open:34x34 -n 2 --option-chance 0.01")["curve"]
    assert [row["options"] for row in rows] == [0, 2]
    assert rows[1]["uniform"] is None
    assert rows[1]["diffusion_time"] > 1000


def test_learn_compares_numbers_of_options(capsys, tmp_path):
    line = f"learn i-maze -n 4,2 --runs 4 --episodes 20 --seed 7 --out {tmp_path}"
    answer = read_json(capsys, line)
    maze = eo.maze("i-maze")
    options = eo.discover(maze, 4)
    expected = {0: None, 2: options[:2], 4: options}
    assert [agent["options"] for agent in answer["agents"]] == list(expected)
    for agent, some in zip(answer["agents"], expected.values(), strict=True):
        record = eo.q_learning(maze, some, runs=4, episodes=20, rng=7)
        assert agent["curve"] == record.returns.mean(axis=0).tolist()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["learning.json", "learning.svg"]
    table = run(capsys, line)[1]
    assert "primitive actions" in table
    assert "4 options" in table


def test_learn_takes_start_and_goal_as_cells(capsys):
    answer = read_json(
        capsys,
        "learn rooms:1x2 -n 0 --runs 1 --episodes 2 --start 1,1 --goal 2,3 --seed 1",
    )
    maze = eo.maze("rooms:1x2", rng=1)
    assert maze.coords[[answer["start"], answer["goal"]]].tolist() == [[1, 1], [2, 3]]


def test_demo_follows_an_option_and_measures(capsys):
    answer = read_json(capsys, "demo")
    rooms = eo.maze("four-rooms")
    assert answer["path"] == eo.discover(rooms, 4).follow("e2+", rooms.goal).tolist()
    assert answer["diffusion_time"] == pytest.approx(
        {"without_options": 620.769, "with_options": 218.428}, abs=1e-3
    )


def test_every_next_command_runs(capsys, tmp_path, monkeypatch):
    """What commands suggest is not refused; the studio would wait for a browser."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.txt").write_text("....\n.##.\n....\n")
    (tmp_path / "split.txt").write_text("..#..\n")
    lines = [
        "demo",
        "mazes",
        "discover own.txt -n 2",
        "discover rooms:6x6 -n 2 --gamma 0.99",
        "discover FrozenLake-v1 -n 2",
        "discover split.txt -n 2",
        "discover rooms:3x3 -n 2",
    ]
    seen: set[str] = set()
    while lines:
        line = lines.pop()
        if line.startswith("learn"):
            line += " --runs 2 --episodes 3"
        code, out, err = run(capsys, line)
        assert (code, "error" in err) == (0, False), line

        suggestion = r"^(?:next:|     ) eigenoptions (.+)$"
        for command in re.findall(suggestion, out, flags=re.MULTILINE):
            if command not in seen and not command.startswith("studio"):
                lines.append(command)
            seen.add(command)
    assert len(seen) >= 6


def test_help_lists_the_commands(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name, command in load_commands().items():
        assert f"\n  {name:9}  {command.SUMMARY}\n" in out
    assert max(map(len, out.splitlines())) <= 85

    assert run(capsys, "")[1] == out
    assert run(capsys, "--version")[:2] == (0, f"eigenoptions {eo.__version__}\n")


@pytest.mark.parametrize("name", load_commands())
def test_help_of_a_command_has_examples_that_parse(capsys, name):
    command = load_commands()[name]
    code, out, _ = run(capsys, f"{name} --help")
    assert code == 0
    assert "None" not in out
    for example in command.EXAMPLES:
        assert f"  eigenoptions {example}\n" in out
        words = shlex.split(example)
        assert make_parser(words).parse_args(words).command == name


def test_help_lists_the_methods(capsys):
    out = run(capsys, "discover --help")[1]
    # Lines are wrapped at hyphens, too.
    text = " ".join(out.split()).replace("- ", "-")
    assert all(name in text for name in eo.methods())


def test_every_file_of_the_folder_is_a_command_with_a_position_of_its_own():
    files = Path(commands.__file__).parent.glob("*.py")
    names = {file.stem for file in files if file.stem != "__init__"}
    assert names == set(load_commands())
    positions = [command.POSITION for command in load_commands().values()]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("discvoer", "discover"),
        ("discover", "MAZE"),
        ("mazes --x", "--x"),
        ("discover for-rooms", "four-rooms"),
        ("discover i-maze -n x", "-n"),
        ("discover i-maze -n 0", "n_options"),
        ("discover i-maze -n 999", "n_options"),
        ("discover i-maze --seed 1.5", "--seed"),
        ("learn i-maze --option-chance often", "--option-chance"),
        ("discover i-maze --gamma 1", "gamma"),
        ("discover i-maze --method magic", "method"),
        ("discover i-maze --operator magic", "operator"),
        ("discover i-maze --method random --operator normalized", "operator"),
        ("discover CartPole-v1 --features magic", "features"),
        ("discover CartPole-v1 --steps 0", "steps"),
        ("discover NoSuch-v1", "NoSuch"),
        ("discover map.txt --out out", "character"),
        ("discover i-maze --out map.txt", "map.txt"),
        ("discover i-maze --out map.txt/out", "map.txt"),
        ("show nowhere.safetensors", "nowhere"),
        ("show map.txt", "map.txt"),
        ("diffusion i-maze --option-chance 1.5", "--option-chance: must be"),
        ("diffusion i-maze --option-chance nan", "--option-chance: must be"),
        ("diffusion i-maze --option-chance 1", "option_chance"),
        ("learn i-maze --stop-chance -1", "--stop-chance"),
        ("diffusion split.txt -n 1 --out out", "infinite"),
        ("learn i-maze --runs 0", "runs"),
        ("learn i-maze -n 2,x", "-n"),
        ("learn i-maze --goal 0,0", "--goal"),
        ("learn i-maze --goal here", "--goal"),
        ("learn split.txt", "start"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_no_file(
    capsys, tmp_path, monkeypatch, line, word
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.txt").write_text("..\n.?\n")
    (tmp_path / "split.txt").write_text("..#..\n")
    assert word in read_error(capsys, line)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.txt", "split.txt"]


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    assert run(capsys, "diffusion i-maze -n 2 --json")[2] == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    code, out, err = run(capsys, "diffusion four-rooms -n 32 --json")
    assert code == 0
    assert "diffusion times" in err
    json.loads(out)


def test_help_loads_nothing_heavy():
    program = """
import sys
from eigenoptions.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"scipy", "numba", "matplotlib", "rich"} & set(sys.modules)
sys.exit(" ".join(heavy) or 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_no_environment_variable_is_set(capsys):
    before = dict(os.environ)
    run(capsys, "discover i-maze -n 2")
    assert dict(os.environ) == before


def test_a_closed_pipe_is_quiet():
    with subprocess.Popen(
        [*COMMAND, "discover", "four-rooms", "-n", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_ctrl_c_ends_with_130_and_one_line(tmp_path: Path):
    """The real command learns for about a minute; it is stopped after a few steps."""
    line = [
        "learn",
        "four-rooms",
        "-n",
        "4",
        "--runs",
        "2000",
        "--episodes",
        "2000",
        "--out",
    ]
    line.append(str(tmp_path / "out"))
    env = {
        **os.environ,
        "FORCE_COLOR": "1",
        "TTY_COMPATIBLE": "1",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen(
        [*COMMAND, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stderr is not None
        # The progress bar says when learning has begun.
        seen = b""
        while b"learning with" not in seen and process.poll() is None:
            seen += os.read(process.stderr.fileno(), 4096)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in seen + err
    assert err.splitlines()[-1].endswith(b"stopped")
    assert not (tmp_path / "out").exists()


def test_a_terminal_without_unicode_gets_question_marks():
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "mazes"], env=env, capture_output=True, check=True)
    assert b"?????" in done.stdout


def test_studio_serves_on_this_machine_until_ctrl_c():
    line = ["studio", "i-maze", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*COMMAND, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert re.match(r"http://127\.0\.0\.1:\d+/", printed)
    assert err == ""
    assert process.returncode == 0


def test_studio_is_written_with_its_mazes_and_served(capsys, tmp_path):
    code, out, _ = run(capsys, f"studio i-maze --out {tmp_path}")
    assert code == 0
    assert out == f"wrote {tmp_path / 'index.html'}\n"
    content = json.loads((tmp_path / "mazes.json").read_text())
    assert [maze["name"] for maze in content["mazes"]] == eo.mazes()
    opened = eo.maze("\n".join(content["maze"]))
    assert opened.fingerprint == eo.maze("i-maze").fingerprint

    with make_server(tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/engine.js"
        with urlopen(address) as answer:
            assert answer.headers.get_content_type() == "text/javascript"
        server.shutdown()


def test_write_studio_refuses_mazes_that_cannot_be_drawn(tmp_path):
    with pytest.raises(ValueError, match="64"):
        write_studio(tmp_path / "page", open_map(2, 70))
    assert not (tmp_path / "page").exists()


def test_draw_cells_colours_levels_trail_and_terminations():
    coords = np.array([[0, 0], [0, 1], [0, 2]])
    drawn = draw_cells(
        coords, "→→●", np.array([-1.0, 0.0, 1.0]), trail=[0], color=True, wide=True
    )
    assert drawn.plain.split("\n")[1] == "██◆ → ● ██"
    styles = [str(span.style) for span in drawn.spans]
    assert [style.split(" on ")[1] for style in styles if " on " in style] == [
        "#ffdd33",
        "#ffffff",
        "#d7263d",
    ]


def test_seed_is_that_of_the_layout(capsys: pytest.CaptureFixture[str]) -> None:
    name = "minigrid:MiniGrid-FourRooms-v0"
    n_states = []
    for seed in (0, 3):
        assert main(["discover", name, "-n", "2", "--seed", str(seed), "--json"]) == 0
        n_states.append(json.loads(capsys.readouterr().out)["states"])
        assert n_states[-1] == eo.from_env(name, seed=seed).n_states
    assert n_states[0] != n_states[1]


def test_seed_of_a_sampled_environment_has_no_layout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["discover", "MountainCar-v0", "-n", "2", "--seed", "3", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["seed"] == 3
