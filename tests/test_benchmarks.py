"""The benchmarks run, compare answers before times, and report a missed aim by their exit code."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
NO_BENCHMARKS = ("record", "compare", "chart", "worlds")
FILES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in NO_BENCHMARKS)
PEER = importlib.util.find_spec("simpleoptions") is not None


def run(*command: str, rows: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "EIGENOPTIONS_ROWS"}
    env |= {"EIGENOPTIONS_ROWS": str(rows)} if rows else {}
    env["PYTHONPATH"] = os.pathsep.join([str(FOLDER), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, encoding="utf-8", timeout=900
    )


def compare(*given: str) -> subprocess.CompletedProcess[str]:
    return run(str(FOLDER / "compare.py"), *given)


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """A folder with one benchmark, which keeps one aim and states a second that the test fills in."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "tiny.py").write_text(
        "import sys, record\n"
        "record.agree('answer', 1e-16, 1e-12)\n"
        "record.row('work', 2.0, 10.0, 'a peer', note='in turns')\n"
        "record.row('play', 3.0, 9.0, 'a rival', unit='steps/s')\n"
        "for n in (10_000, 100_000, 1_000_000): record.point('curve', n, 1e-6 * n**1.2)\n"
        "record.fact('constant', 3.14159, 'm')\n"
        "record.skip('moon', 'too far')\n"
        "record.aim('first', 5.0, least=2)\n"
        "record.aim('second', float(open(__file__.replace('tiny.py', 'second')).read()), most=2)\n"
        "sys.exit(record.verdict())\n",
        encoding="utf-8",
    )
    return folder


def test_the_table_has_all_rows(made_up: Path, tmp_path: Path) -> None:
    (made_up / "second").write_text("1.5")
    out = tmp_path / "out"
    done = compare("--folder", str(made_up), "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    text = (out / "table.md").read_text(encoding="utf-8")
    assert text.split("\n", 2)[2] in done.stdout
    assert "| work | 2 s | a peer | 10 s | 5x |" in text
    assert "| play | 3 steps/s | a rival | 9 steps/s | **0.333x** |" in text
    assert "* play: a rival is 3x faster." in text  # worse, and reported
    assert "* work, a peer: in turns." in text
    assert "| first | at least 2 x | 5 | met |" in text
    assert "| second | at most 2 x | 1.5 | met |" in text
    assert re.search(r"\| curve, s \| 10,000: .* \| 1\.20 \|", text)
    assert "| constant | 3.14 m |" in text
    assert "* moon: too far" in text
    assert "Answers first: 1 were compared with theirs" in text
    assert "load average before the start" in text
    assert (out / "chart.png").stat().st_size > 1000
    assert "<svg" in (out / "chart.svg").read_text(encoding="utf-8")
    with (out / "rows.csv").open(encoding="utf-8", newline="") as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    assert kinds == ["agree", "row", "row", *["point"] * 3, "fact", "skip", "aim", "aim"]
    assert json.loads((out / "results.json").read_text())["parts"][0]["exit"] == 0


def test_a_missed_aim_and_a_broken_file_end_with_exit_code_1(made_up: Path, tmp_path: Path) -> None:
    (made_up / "second").write_text("2.5")
    (made_up / "broken.py").write_text("raise RuntimeError('no such luck')")
    done = compare("--folder", str(made_up), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "| second | at most 2 x | 2.5 | **missed** |" in done.stdout
    assert "| benchmarks/broken.py | ends well | exit code 1 | **missed** |" in done.stdout
    assert "no such luck" in (tmp_path / "out" / "broken.txt").read_text()
    assert "MISSED: second" in done.stdout


def test_what_would_begin_too_late_is_not_run(made_up: Path, tmp_path: Path) -> None:
    (made_up / "second").write_text("1")
    (made_up / "zoo.py").write_text("raise RuntimeError('too late')")
    done = compare("--folder", str(made_up), "--out", str(tmp_path / "out"), "--minutes", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "* benchmarks/zoo.py: 0 minutes were over" in (tmp_path / "out" / "table.md").read_text()


def test_results_go_into_a_page_between_its_markers(made_up: Path, tmp_path: Path) -> None:
    (made_up / "second").write_text("1")
    out = tmp_path / "out"
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("above\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nbelow\n", encoding="utf-8")
    assert "run make bench first" in compare("--docs", str(page), "--out", str(out)).stderr
    compare("--folder", str(made_up), "--out", str(out))
    for _ in range(2):  # again changes nothing
        assert compare("--docs", str(page), "--out", str(out)).returncode == 0
        text = page.read_text(encoding="utf-8")
        assert text.startswith("above\n<!-- bench: begin -->\n\nMeasured on")
        assert text.endswith("<!-- bench: end -->\nbelow\n")
        assert text.count("### Aims") == 1
    assert (page.parent / "images" / "benchmarks.svg").exists()
    page.write_text("no markers", encoding="utf-8")
    assert compare("--docs", str(page), "--out", str(out)).returncode != 0


def test_answers_that_differ_end_a_benchmark() -> None:
    done = run("-c", "import record; record.agree('answer', 1e-3, 1e-6); print('timed')")
    assert done.returncode != 0
    assert "the answers differ: answer by 1.000e-03" in done.stderr
    assert "timed" not in done.stdout


def test_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    done = compare("--only", "nonsense", "--out", str(tmp_path))
    assert done.returncode != 0
    assert "no benchmark called nonsense" in done.stderr


def test_the_page_of_results_has_its_markers() -> None:
    text = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert text.index("<!-- bench: begin -->") < text.index("### Aims") < text.index("<!-- bench: end -->")


@pytest.mark.parametrize("path", [*FILES, FOLDER / "compare.py"], ids=lambda path: path.stem)
def test_a_benchmark_says_what_it_measures_and_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert '__name__ == "__main__"' in text


# Those that start browsers, clusters, games or a process for each size take minutes and are left to `make bench`.
LONG = {"atari", "growth", "million", "parallel", "screens", "simple_options", "studio"}
SHORT = [path.stem for path in FILES if path.stem not in LONG]


def test_one_size_of_the_growth_has_every_step() -> None:
    done = run(str(FOLDER / "growth.py"), "--at", "perfect maze", "12")
    found = json.loads(done.stdout)
    assert found["n"] == 287
    assert found["fill"] == 286  # of a tree: one entry for each edge
    assert min(found[step] for step in ("reading", "graph", "spectrum", "options")) > 0


# One after the other in one process, which loads NumPy, numba and torch once; each has its own records.
ALL_SHORT = """
import os, runpy, sys, traceback
from contextlib import redirect_stderr, redirect_stdout
benchmarks, out, *names = sys.argv[1:]
for name in names:
    os.environ["EIGENOPTIONS_ROWS"] = f"{out}/{name}.jsonl"
    sys.argv, sys.path[0] = [f"{benchmarks}/{name}.py", "--quick"], benchmarks
    with open(f"{out}/{name}.out", "w") as said, redirect_stdout(said), redirect_stderr(said):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 2
    open(f"{out}/{name}.code", "w").write(str(code))
    for module in [m for m, of in sys.modules.items() if str(getattr(of, "__file__", "")).startswith(benchmarks)]:
        del sys.modules[module]
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with what each short benchmark printed, recorded and ended with."""
    out = tmp_path_factory.mktemp("short")
    done = run("-c", ALL_SHORT, str(FOLDER), str(out), *SHORT)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", SHORT)
def test_a_benchmark_runs_and_says_something(name: str, short: Path) -> None:
    said = (short / f"{name}.out").read_text()
    # A missed aim is no fault here: other processes may have had the cores.
    assert (short / f"{name}.code").read_text() in ("0", "1"), said
    found = [json.loads(line) for line in (short / f"{name}.jsonl").read_text().splitlines()]
    assert {entry["part"] for entry in found} == {name}
    assert {"row", "fact"} & {entry["kind"] for entry in found}
    assert all(entry["ratio"] > 0 for entry in found if entry["kind"] == "row")
    assert "Traceback" not in said
    assert said.strip()


@pytest.mark.skipif(not PEER, reason="simpleoptions is not installed: pip install 'eigenoptions[bench]'")
def test_simpleoptions_is_repaired_and_agrees(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    done = run(str(FOLDER / "simple_options.py"), "--quick", rows=rows)
    # As above, a missed aim is no error.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert done.stdout.count("repaired: ") >= 2
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [e["gap"] <= e["most"] for e in found if e["kind"] == "agree"] == [True] * 3
    assert any(e["kind"] == "aim" for e in found)


@pytest.mark.skipif(PEER, reason="simpleoptions is here")
def test_without_simpleoptions_its_aim_is_not_met() -> None:
    done = run(str(FOLDER / "simple_options.py"), "--quick")
    assert done.returncode == 1
    assert "pip install 'eigenoptions[bench]'" in done.stdout
