"""The command line: what it prints, writes and refuses, as a person and as a script see it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import eigenoptions as eo
from eigenoptions.cli import COMMANDS, main, terminal
from eigenoptions.discovery.methods import methods
from eigenoptions.features import MAPS
from eigenoptions.parallel import ENGINES
from eigenoptions.spectra import OPERATORS

COMMAND = [sys.executable, "-c", "import sys; from eigenoptions.cli import main; sys.exit(main())"]


def run(capsys, *args: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    try:
        code = main(args)
    except SystemExit as stop:
        # The argument parser's own way out.
        code = stop.code
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def refused(capsys, *args: str) -> str:
    """The one line of a command that is refused."""
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_discover_shows_maps_and_a_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "discover", "four-rooms", "-n", "4")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "four-rooms: 104 states; 4 eigen options, normalized Laplacian, gamma 0.9"
    assert lines[2].split() == ["e2+", "e2-", "e3+", "e3-"]
    assert lines[4] == "  ".join(["█" * 13] * 4)
    assert lines[18] == "it stops at ●"
    assert out.count("●") == 5
    assert lines[-1] == "next: eigenoptions diffusion four-rooms -n 4"
    assert "(2, 10)" in out
    assert "(10, 2)" in out
    assert any(line.split() == ["e3+", "0.0084952", "+", "(2,", "2)", "8.72", "99%"] for line in lines)


def test_as_many_maps_per_row_as_the_terminal_is_wide(capsys, monkeypatch):
    for width, many in ((30, 2), (70, 4)):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(capsys, "discover", "four-rooms", "-n", "4")[1].splitlines()[2].count("e") == many


def test_discover_prints_one_json_object(capsys):
    code, out, err = run(capsys, "discover", "i-maze", "-n", "3", "--gamma", "0.95", "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    options = eo.discover(eo.maze("i-maze"), 3, gamma=0.95)
    assert found["settings"]["gamma"] == 0.95
    assert [o["label"] for o in found["options"]] == list(options.labels)
    assert [o["sign"] for o in found["options"]] == ["+", "-", "+"]
    assert [o["eigenvalue"] for o in found["options"]] == options.eigenvalues.tolist()
    assert [o["mean_length"] for o in found["options"]] == options.mean_length.tolist()
    assert [o["stop_states"] for o in found["options"]] == [s.tolist() for s in options.stops]
    assert found["options"][0]["stops"] == options.coords[options.stops[0]].tolist()
    assert found["files"] == []


def test_help_names_what_the_registries_hold(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    for command in ("discover", "diffusion", "learn"):
        out = run(capsys, command, "--help")[1]
        assert f"one of {', '.join(methods())})" in out
        assert f"one of {', '.join(OPERATORS)})" in out
    assert f"one of {', '.join(MAPS)})" in run(capsys, "discover", "--help")[1]
    for command in ("discover", "diffusion", "reproduce", "atari"):
        assert f"one of {', '.join(ENGINES)})" in run(capsys, command, "--help")[1]


def test_every_method_is_offered(capsys):
    for method, labels in (("bottleneck", ["room 1", "room 2", "room 3", "room 4"]), ("random", ["goal 86"])):
        code, out, _ = run(capsys, "discover", "four-rooms", "--method", method, "--json")
        assert code == 0
        assert [o["label"] for o in json.loads(out)["options"]][: len(labels)] == labels
        assert json.loads(out)["options"][0]["sign"] is None


def test_eigenvalue_zero_is_counted_when_asked(capsys):
    found = json.loads(run(capsys, "discover", "i-maze", "-n", "3", "--no-skip-zero", "--json")[1])
    assert [o["label"] for o in found["options"]] == ["e1+", "e1-", "e2+"]


def test_out_holds_the_options_and_the_figures(capsys, tmp_path):
    folder = tmp_path / "deep" / "out"
    code, out, _ = run(capsys, "discover", "four-rooms", "-n", "4", "--out", str(folder), "--json")
    assert code == 0
    names = ["options.safetensors", "options.svg", "pvfs.svg"]
    assert json.loads(out)["files"] == [str(folder / name) for name in names]
    assert sorted(p.name for p in folder.iterdir()) == names
    mdp = eo.maze("four-rooms")
    saved = eo.load_options(folder / "options.safetensors", mdp)
    np.testing.assert_array_equal(saved.policy, eo.discover(mdp, 4).policy)
    before = [(folder / name).read_bytes() for name in names]
    run(capsys, "discover", "four-rooms", "-n", "4", "--out", str(folder))
    assert [(folder / name).read_bytes() for name in names] == before


def test_show_gives_back_what_discover_showed(capsys, tmp_path):
    first = run(capsys, "discover", "four-rooms", "-n", "4", "--out", str(tmp_path))[1]
    again = run(capsys, "show", str(tmp_path / "options.safetensors"))[1]
    assert again[: again.index("in Python: ")] == first[: first.index("wrote ")]
    code, out, _ = run(capsys, "show", str(tmp_path / "options.safetensors"), "--only", "2", "--json")
    assert code == 0
    assert [o["label"] for o in json.loads(out)["options"]] == ["e3+"]
    assert json.loads(out)["settings"]["gamma"] == 0.9


def test_options_without_coordinates_are_shown_as_a_table(capsys, tmp_path):
    ring = eo.MDP(np.roll(np.eye(6), 1, axis=1))
    eo.solve(ring, eo.Purpose(np.arange(6.0), "up")).save(tmp_path / "ring.safetensors")
    code, out, _ = run(capsys, "show", str(tmp_path / "ring.safetensors"))
    assert code == 0
    assert out.splitlines()[0] == "map: 6 states; 1 option, gamma 0.9"
    assert any(line.split()[:2] == ["up", "5"] for line in out.splitlines())
    found = json.loads(run(capsys, "show", str(tmp_path / "ring.safetensors"), "--json")[1])["options"][0]
    assert (found["stops"], found["stop_states"], found["eigenvalue"], found["sign"]) == (
        None,
        [5],
        None,
        None,
    )


def test_a_maze_file_is_as_good_as_a_name(capsys, tmp_path):
    path = tmp_path / "corridor.txt"
    path.write_text("S...G\n")
    code, out, _ = run(capsys, "discover", str(path), "-n", "2", "--operator", "combinatorial", "--json")
    assert code == 0
    assert json.loads(out)["maze"] == "corridor"
    assert sorted(o["stops"] for o in json.loads(out)["options"]) == [[[0, 0]], [[0, 4]]]


def test_large_mazes_are_shown_as_maps_of_the_eigenvector(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "hall.txt"
    path.write_text("\n".join(["." * 100] * 2))
    code, out, _ = run(capsys, "discover", str(path), "-n", "2", "--operator", "combinatorial")
    assert code == 0
    assert max(map(len, out.splitlines()[:-1])) <= 80
    # The hall is one line of 34 blocks; e2 rises along it, and the option stops at its higher end.
    (row,) = re.findall(r"^[●·+#-]+  [●·+#-]+$", out, flags=re.MULTILINE)
    first, second = row.split("  ")
    if first[0] == "●":
        first, second = second, first
    for half in (first, second[::-1]):
        assert re.fullmatch("·{9,13}-{4,7}[+]{4,7}#{9,12}●", half)
    assert "it climbs from · to #; it stops at ●" in out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = run(capsys, "discover", str(path), "-n", "2")[1]
    assert "▀" in out
    assert "it climbs from blue to orange; it stops at red" in out
    run(capsys, "discover", str(path), "-n", "2", "--out", str(tmp_path))
    assert "it climbs from blue to white" in run(capsys, "show", str(tmp_path / "options.safetensors"))[1]


def test_several_components_are_noted(capsys, tmp_path):
    path = tmp_path / "split.txt"
    path.write_text("...#....\n...#....\n")
    args = ("discover", str(path), "-n", "2", "--json", "--out", str(tmp_path / "out"))
    code, out, err = run(capsys, *args)
    assert code == 0
    assert json.loads(out)["states"] == 14
    assert err.startswith("note: ")
    assert err.count("\n") == 1
    assert "2 components" in err


def test_mazes_are_listed_with_thumbnails(capsys):
    code, out, err = run(capsys, "mazes")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == eo.mazes()
    assert out.splitlines()[1].split() == ["104", "states", "19", "states", "100", "states"]
    listed = json.loads(run(capsys, "mazes", "--json")[1])["mazes"]
    assert [m["name"] for m in listed] == eo.mazes()
    for m in listed:
        mdp = eo.maze(m["map"])
        assert mdp.fingerprint == eo.maze(m["name"]).fingerprint
        assert (mdp.start, mdp.goal) == (eo.maze(m["name"]).start, eo.maze(m["name"]).goal)


def test_reproduce_writes_a_report(capsys, tmp_path):
    folder = tmp_path / "report"
    args = ("reproduce", "--only", "figure1,figure4", "--settings", "quick", "--out", str(folder))
    code, out, err = run(capsys, *args)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"report: {folder / 'index.html'}"
    assert out.splitlines()[-2].startswith("3 claims: 3 hold; ")
    assert (folder / "index.html").is_file()
    found = json.loads(run(capsys, *args, "--json")[1])
    assert {c["experiment"] for c in found["claims"]} == {"figure1", "figure4"}
    assert set(found["seconds"]) == {"figure1", "figure4"}
    assert found["files"] == [str(folder / "index.html")]


def test_engines_give_the_same_bytes(capsys, tmp_path):
    for engine in ENGINES:
        args = ("--only", "chances,figure7", "--settings", "quick", "--engine", engine)
        code, _, err = run(capsys, "reproduce", *args, "--out", str(tmp_path / engine))
        assert (code, err) == (0, "")
    one, *others = (
        {p.name: p.read_bytes() for p in (tmp_path / engine / "data").glob("*.csv")} for engine in ENGINES
    )
    assert one
    assert all(other == one for other in others)


def test_help_and_version(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "--version" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(capsys)[1] == run(capsys, "-h")[1] == out
    for command in COMMANDS:
        code, out, _ = run(capsys, command, "--help")
        assert (code, out.split()[:3]) == (0, ["usage:", "eigenoptions", command])
        assert command not in ("discover", "diffusion", "learn", "reproduce") or "(default: None)" not in out
    assert "[MAZE]" in run(capsys, "studio", "--help")[1]
    assert "-n N, --n-options N" in run(capsys, "discover", "--help")[1]
    assert run(capsys, "--version") == (0, f"eigenoptions {eo.__version__}\n", "")


def test_an_unknown_command_and_a_number_that_is_none(capsys):
    assert refused(capsys, "discvoer") == "error: no command 'discvoer': did you mean 'discover'?\n"
    assert "there are demo, discover, show, mazes" in refused(capsys, "--x")
    for args in (("-n", "abc"), ("--steps", "1.5"), ("--gamma", "high")):
        err = " ".join(run(capsys, "discover", "i-maze", *args)[2].split())
        assert re.search(rf"it takes a (whole )?number, got '{args[1]}'", err)
        assert "NoneType" not in err


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom eigenoptions.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = ('numpy', 'scipy', 'numba', 'matplotlib', 'typeguard', 'tyro', 'rich')\n"
        "sys.exit(' '.join(m for m in heavy if m in sys.modules) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_package_runs_as_a_module():
    for name in ("eigenoptions", "eigenoptions.cli"):
        command = [sys.executable, "-m", name, "--version"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        assert done.stdout == f"eigenoptions {eo.__version__}\n"


def test_a_closed_pipe_is_no_error():
    with subprocess.Popen(
        [*COMMAND, "discover", "four-rooms", "-n", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def stored(folder, function):
    """Rows of the jobs of a function in the store of a report."""
    with closing(sqlite3.connect(folder / "jobs" / "jobs.sqlite")) as database:
        statement = "SELECT rowid, key, seconds FROM jobs WHERE function LIKE ?"
        return database.execute(statement, (f"%.{function}",)).fetchall()


def test_an_interrupted_reproduction_goes_on(tmp_path):
    """By Ctrl-C; tests/test_paper.py kills one."""
    folder = tmp_path / "report"
    only = "figure1,figure2,figure6"
    args = [*COMMAND, "reproduce", "--settings", "quick", "--only", only, "--out", str(folder)]
    with subprocess.Popen(
        args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        log = folder / "jobs" / "jobs.sqlite-wal"
        # A job of figure 6 is being stored, so those of the experiments before it are.
        while not (log.exists() and b".diffuse" in log.read_bytes()) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert re.fullmatch(r"stopped: \d+ jobs finished and kept in \S+/jobs; the same command continues\n", err)
    assert not (folder / "index.html").exists()
    done = stored(folder, "figure1.run")
    assert len(done) == len(stored(folder, "first_options.run")) == 1
    again = subprocess.run(args, capture_output=True, text=True, check=True)
    assert "report: " in again.stdout
    assert stored(folder, "figure1.run") == done
    assert Path(folder / "index.html").is_file()
    assert not list(folder.rglob(".*.tmp"))


def test_an_error_in_a_job_says_which(capsys, tmp_path, monkeypatch):
    from reproduction.paper import figure7

    broken = {**figure7.SETTINGS["quick"], "max_steps": 0}
    monkeypatch.setitem(figure7.EXPERIMENT.settings, "quick", broken)
    args = ("--settings", "quick", "--engine", "serial", "--only", "figure7", "--out", str(tmp_path / "new"))
    line = refused(capsys, "reproduce", *args)
    assert "max_steps must be a whole number in 1..2147483647, got 0 (in job 1 of " in line
    assert "'maze': 'i-maze'" in line


def test_a_bar_is_shown_on_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    _, out, err = run(capsys, "diffusion", "four-rooms", "-n", "64", "--json")
    assert "computing diffusion times" in err
    json.loads(out)
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("TTY_COMPATIBLE")
    assert run(capsys, "diffusion", "i-maze", "-n", "2", "--json")[2] == ""


def test_a_terminal_without_unicode_gets_question_marks():
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    seen = subprocess.run([*COMMAND, "mazes"], env=env, capture_output=True, check=True)
    assert b"?????" in seen.stdout


def test_the_bar_counts_time_over_all_steps_and_shows_no_empty_count(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(terminal, "Console", partial(Console, file=screen, force_terminal=True, width=90))
    monkeypatch.setattr(terminal, "monotonic", lambda: clock[0])
    with terminal.bar("first") as line:
        clock[0] = 75.0
        line.begin("2 of 16: second")
        line._shown.refresh()
        assert "0:01:15" in screen.getvalue()
        assert "/?" not in screen.getvalue()
        line.step(3, 7)
        line._shown.refresh()
        assert "3/7" in screen.getvalue()


def test_plain_lines_are_printed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, nothing = io.StringIO(), lambda *_, **__: None
    monkeypatch.setattr(
        terminal, "Console", lambda stderr, **settings: Console(file=screen, width=20, **settings)
    )
    line = terminal.Bar(SimpleNamespace(add_task=nothing, reset=nothing, update=nothing))
    line.lines = True
    line.begin("maze [red]a[/red], which is longer than the line")
    line.step(1, 4)
    line.step(1, 4)
    line.step(3, 4)
    first = "maze [red]a[/red], which is longer than the line"
    assert screen.getvalue() == f"{first}\n{first}: 1 of 4\n{first}: 3 of 4\n"


def test_learning_counts_its_steps_over_all_numbers_of_options(capsys, monkeypatch):
    steps = []
    monkeypatch.setattr(terminal.Bar, "step", lambda bar, done, total: steps.append((done, total)))
    assert run(capsys, "learn", "i-maze", "-n", "0,2", "--runs", "5", "--episodes", "2")[0] == 0
    assert steps == [(i, 10) for i in range(1, 11)]


@pytest.mark.parametrize(
    ("many", "words"),
    [(0, "no eigen options"), (1, "1 eigen option"), (2, "2 eigen options"), (None, "eigen options")],
)
def test_headings_count_the_options(many, words):
    assert terminal.describe("m", 3, {"method": "eigen", "n_options": many}) == f"m: 3 states; {words}"


@pytest.mark.parametrize("features", ["bits", "fourier"])
def test_features_that_are_given_make_discover_sample(capsys, monkeypatch, features):
    asked = []

    def read_source(source, sample, **_):
        asked.append(sample)
        raise ValueError("as far as that")

    monkeypatch.setattr("eigenoptions.discovery.read_source", read_source)
    assert "as far as that" in refused(capsys, "discover", "MountainCar-v0", "--features", features)
    assert "as far as that" in refused(capsys, "discover", "four-rooms")
    assert asked == [True, False]


def test_shares_of_diffusion_times_are_green_where_options_help():
    from eigenoptions.cli.measure import _diffusion_row

    rows = [
        _diffusion_row({"options": n, "added": "", "diffusion_time": time}, 100.0)
        for n, time in ((0, 100.0), (1, 99.0), (1, 101.0), (1, 300.0))
    ]
    assert [str(row[-1].style) for row in rows] == ["", "green", "red", "red"]
    assert [str(row[-1]) for row in rows] == ["100%", "99%", "101%", "300%"]


def test_the_run_of_the_demo_follows_its_option(four_rooms):
    from eigenoptions.cli.demo import run as run_of

    options = eo.discover(four_rooms, 4)
    for i, policy in enumerate(options.policy):
        path = run_of(four_rooms, options, i)
        assert path[0] == four_rooms.start
        assert path[1:] == [four_rooms.successors[s, policy[s]] for s in path[:-1]]
        assert policy[path[-1]] < 0
