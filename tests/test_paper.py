"""The reproduction: claims follow from results, stored results equal new ones, the page is self-contained."""

from __future__ import annotations

import copy
import csv
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from reproduction import panels as plots
from eigenoptions.cli import main
from reproduction import Claim, all_experiments
from reproduction.experiment import VERDICTS, verdict
from reproduction.page import inline
from reproduction.paper import first_options as discovered
from reproduction.paper import theorem31
from reproduction.old_report import page, reproduce
from reproduction.store import Store
from reproduction.tables import tables

EXPERIMENTS = all_experiments()
figure2, figure3, _, figure5 = discovered.EXPERIMENTS
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Folder and outcomes of a quick reproduction."""
    folder = tmp_path_factory.mktemp("paper") / "report"
    return folder, reproduce(folder, "quick")


@pytest.fixture(scope="module")
def results(report):
    return {o.experiment.name: o.results for o in report[1]}


@pytest.fixture(scope="module")
def shown(report):
    """The page of the quick reproduction."""
    return (report[0] / "index.html").read_text(encoding="utf-8")


def test_the_list_of_experiments_is_complete():
    names = [e.name for e in EXPERIMENTS]
    assert len(set(names)) == len(names)
    assert {f"figure{i}" for i in range(1, 8)} | {"theorem31", "bottlenecks", "randoms", "tasks"} <= set(
        names
    )
    assert all({"paper", "quick"} <= set(e.settings) for e in EXPERIMENTS)


PLANTED = """
from reproduction.experiment import Experiment

def run(settings, pmap):
    return {"numbers": [{"n": n} for n in range(settings["n"])]}

def figure(results):
    from reproduction import panels as plots
    return plots.figure([plots.maze_panel([[0, 0]])])

EXPERIMENT = Experiment(
    "planted", "Planted", "1", "Nothing.", dict.fromkeys(("paper", "quick"), {"n": 3}), run, figure, lambda results: [],
    order=15,
)
"""


def test_an_experiment_is_one_file(tmp_path):
    """A planted file appears in the list, between its neighbours, and the command runs it."""
    package = tmp_path / "src" / "eigenoptions"
    shutil.copytree(ROOT / "src" / "eigenoptions", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "experiments" / "paper" / "planted.py").write_text(PLANTED)
    code = """
from eigenoptions.cli import main
from reproduction import all_experiments
print(*(experiment.name for experiment in all_experiments()))
assert main(["reproduce", "--only", "planted", "--engine", "serial", "--out", "report"]) == 0
"""
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True, text=True)
    before = [e.name for e in EXPERIMENTS]
    assert found.stdout.splitlines()[0].split() == [before[0], "planted", *before[1:]]
    assert (tmp_path / "report" / "data" / "planted-numbers.csv").read_text() == "n\n0\n1\n2\n"


def test_the_store_loads_no_experiment():
    code = "import sys, reproduction.store; print(*(m for m in sys.modules if '.paper' in m))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_every_experiment_draws_and_judges(experiment, results, shown):
    found = results[experiment.name]
    assert f'aria-label="{escape(experiment.title)}"' in shown
    claims, notes = experiment.claims(found), experiment.notes(found)
    assert claims or notes
    words = [note if isinstance(note, str) else f"{note[0]} {note[1]}" for note in notes]
    for claim in claims:
        assert claim.verdict in VERDICTS
        assert all((claim.sentence, claim.section, claim.measured, claim.evidence, claim.id))
    assert all(words)
    assert "nan" not in " ".join([*words, *(c.measured + c.evidence for c in claims)]).lower().split()
    assert tables(found)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_results_on_disk_are_as_good_as_new(experiment, results, shown, tmp_path):
    given = experiment.settings["quick"]
    with Store(tmp_path) as store:
        store.put(experiment.run, given, results[experiment.name])
    with Store(tmp_path) as store:
        again = store.get(experiment.run, given)
    assert experiment.notes(again) == experiment.notes(results[experiment.name])
    assert experiment.claims(again) == experiment.claims(results[experiment.name])
    # The same picture as on the page, which was drawn from the results themselves.
    assert inline(plots.svg(experiment.figure(again)), experiment.name, experiment.title) in shown


def test_results_of_other_settings_or_damaged_ones_are_not_used(tmp_path):
    experiment = EXPERIMENTS[0]
    given = experiment.settings["quick"]
    plain = {"x": np.arange(3), "rows": [{"a": 1, "b": float("inf")}], "nan": float("nan"), "text": "t"}
    with Store(tmp_path) as store:
        assert store.get(experiment.run, given) is None
        store.put(experiment.run, given, plain)
        again = store.get(experiment.run, given)
        assert store.get(experiment.run, {**given, "mazes": ["i-maze"]}) is None
    np.testing.assert_array_equal(again["x"], plain["x"])
    assert again["rows"] == plain["rows"]
    assert np.isnan(again["nan"])
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as database, database:
        database.execute("UPDATE jobs SET result = substr(result, 1, length(result) - 1)")
    with Store(tmp_path) as store:
        assert store.get(experiment.run, given) is None


def test_verdicts_are_all_some_or_none():
    assert [verdict(True), verdict(True, False), verdict(False, False), verdict(None)] == list(VERDICTS)
    undecided = [verdict(True, None), verdict(False, None), verdict()]
    assert undecided == ["not decided"] * 3
    assert verdict(True, False, None) == "partly"
    with pytest.raises(ValueError, match="one of holds, partly, does not hold, not decided, got 'maybe'"):
        Claim("a", "1", "b", "maybe", "c")


def test_four_rooms_has_its_doorways_and_corners(results):
    found = results["figure5"]
    assert discovered.doorways(found) == [(3, 6), (6, 2), (7, 9), (10, 6)]
    assert discovered.corners(found) == [(1, 1), (1, 11), (11, 1), (11, 11)]


def test_the_second_pvf_leads_to_opposite_rooms(results):
    found = results["figure2"]
    ends = {discovered.stops(found, label)[0] for label in ("e2+", "e2-")}
    assert ends == {(2, 10), (10, 2)}
    judged = {claim.id: claim for claim in figure2.claims(found)}
    assert (judged["opposite-room"].verdict, judged["peak-corner"].verdict) == ("holds", "partly")
    assert "(1, 11)" in judged["peak-corner"].evidence


def test_the_fifth_eigenoption_is_the_first_at_a_doorway(results):
    claim, rooms = figure5.claims(results["figure5"])
    assert (claim.verdict, rooms.verdict) == ("holds", "partly")
    assert "e5" in claim.measured


def test_a_verdict_follows_the_results(results):
    earlier = copy.deepcopy(results["figure5"])
    earlier["stops"].append({"operator": "normalized", "option": "e3+", "row": 3, "column": 6})
    assert figure5.claims(earlier)[0].verdict == "does not hold"

    same_room = copy.deepcopy(results["figure2"])
    for row in same_room["stops"]:
        if row["operator"] == "normalized" and row["option"].startswith("e2"):
            row["row"], row["column"] = 1, 11
    said = {c.id: c.verdict for c in figure2.claims(same_room)}
    assert (said["opposite-room"], said["peak-corner"]) == ("does not hold", "holds")

    twice = copy.deepcopy(results["figure3"])
    for row in twice["options"]:
        row["mean_length"] = 10.0 if row["option"] == "e2+" else 5.0
    assert figure3.claims(twice)[1].verdict == "holds"

    endless = copy.deepcopy(results["theorem31"])
    endless["options"][0] |= {"n_stops": 0, "mean_length": float("inf")}
    assert theorem31.claims(endless)[0].verdict == "does not hold"


def test_fourth_option_of_the_open_room_has_twice_the_stops(results):
    rows = results["figure3"]
    assert discovered.option(rows, "e4+")["n_stops"] == 2 * discovered.option(rows, "e2+")["n_stops"] == 2
    # Along the diagonals, one corner each: the option of -e mirrors that of e.
    plus, minus = (discovered.stops(rows, label, "combinatorial")[0] for label in ("e2+", "e2-"))
    assert (plus[0] + minus[0], plus[1] + minus[1]) == (11, 11)


class Page(HTMLParser):
    """Tags that are open, ids, and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("meta", "br", "link", "img", "input"):
            self.open.append(tag)
        self.handle_attributes(attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.handle_attributes(attrs)

    def handle_attributes(self, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.addresses.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_outside(report):
    folder, _ = report
    text = (folder / "index.html").read_text()
    seen = Page(text)
    assert seen.open == []
    assert len(set(seen.ids)) == len(seen.ids)
    assert not seen.tags & {"script", "link", "iframe"}
    for address in seen.addresses:
        if address.startswith("#"):
            assert address[1:] in seen.ids
        elif not address.startswith("data:image/png;base64,"):  # a colour bar, inside the page
            assert (folder / address).is_file()
    outside = {
        url for url in re.findall(r'https?://[^"\s<>]+', text) if not url.startswith("http://www.w3.org/")
    }
    assert outside == set()
    assert "url(http" not in text
    assert "prefers-color-scheme:dark" in text


def test_the_page_has_every_claim_once(report):
    folder, outcomes = report
    text = (folder / "index.html").read_text()
    claims = [c for o in outcomes for c in o.experiment.claims(o.results)]
    assert text.count('<details class="claim ') == len(claims)
    for claim in claims:
        assert text.count(f'id="claim-{claim.id}"') == 1
    assert text.index('id="claims"') < text.index("<svg")
    assert text.count("<svg") == len(EXPERIMENTS) + sum(e.closer is not None for e in EXPERIMENTS)
    with open(folder / "data" / "claims.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["id"], r["verdict"]) for r in rows] == [(c.id, c.verdict) for c in claims]
    assert "Not run yet" not in text
    for word in ("holds", "partly", "does not hold", "not decided"):
        assert text.count(f'">{word}</span><span class="said">') == sum(c.verdict == word for c in claims)
    assert f">{sum(c.verdict == 'holds' for c in claims)} hold</label>" in text
    # What the reader should take away stands beside each claim that does not hold.
    assert text.count('class="lesson"') == sum(c.verdict == "does not hold" for c in claims)


def test_data_are_tidy_csv(report, results):
    folder, _ = report
    with open(folder / "data" / "figure5-options.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["option"] for r in rows[:4]] == ["e1+", "e1-", "e2+", "e2-"]
    assert [float(r["mean_length"]) for r in rows] == [
        r["mean_length"] for r in results["figure5"]["options"]
    ]


def test_a_second_run_goes_on_from_what_is_done(tmp_path):
    folder, names, news = tmp_path / "report", ["figure1", "figure4"], list[str]()
    outcomes = reproduce(folder, "quick", names)
    again = reproduce(folder, "quick", names, tell=news.append)
    assert news == ["writing the report"]
    assert [o.seconds for o in again] == [o.seconds for o in outcomes]
    both = reproduce(folder, "quick", ["figure1"], fresh=True, tell=news.append)
    assert news[1:] == ["1 of 1: Figure 1: the domains", "writing the report"]
    assert [o.experiment.name for o in both] == names  # the other one stays in the report


def data(folder, name):
    """Bytes of the tables of an experiment."""
    return {p.name: p.read_bytes() for p in sorted((folder / "data").glob(f"{name}-*.csv"))}


def learned(folder):
    """Seconds of the stored jobs of learning."""
    with closing(sqlite3.connect(folder / "jobs" / "jobs.sqlite")) as database:
        return database.execute("SELECT seconds FROM jobs WHERE function LIKE '%.jobs.learn'").fetchall()


KILLED = """
import os, signal, sys
from reproduction.old_report import reproduce
def progress(done, total):
    if done == 5:
        os.kill(os.getpid(), signal.SIGKILL)
from eigenoptions.parallel import using
with using(sys.argv[2]):
    reproduce(sys.argv[1], "quick", ["figure7"], progress=progress)
"""


def test_a_killed_reproduction_loses_only_the_jobs_in_flight_and_ends_in_the_same_bytes(report, tmp_path):
    folder = tmp_path / "report"
    command = [sys.executable, "-c", KILLED, str(folder), "processes"]
    assert subprocess.run(command, timeout=300, check=False).returncode == -signal.SIGKILL
    assert not (folder / "index.html").exists()
    assert len(learned(folder)) == 5
    seen = []
    reproduce(folder, "quick", ["figure7"], progress=lambda done, total: seen.append(done))
    assert seen == list(range(5, seen[-1] + 1))
    assert len(learned(folder)) == seen[-1]
    assert data(folder, "figure7") == data(report[0], "figure7") != {}


def test_starting_over_with_one_experiment_outlives_a_kill(tmp_path):
    """What was to be made fresh is not taken from the old results after an interruption."""
    folder = tmp_path / "report"
    reproduce(folder, "quick", ["chances"])

    def stop(done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(folder, "quick", ["chances"], fresh=True, progress=stop)
    seen = []
    reproduce(folder, "quick", ["chances"], progress=lambda *p: seen.append(p))
    assert seen[0][0] == 1 < seen[0][1]


def test_two_runs_on_one_report_do_not_meet(report, capsys, tmp_path):
    folder, _ = report
    page_before = (folder / "index.html").read_bytes()
    with Store(folder / "jobs"):
        assert main(["reproduce", "--settings", "quick", "--out", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"is used by process {os.getpid()} on " in err
    assert (folder / "index.html").read_bytes() == page_before


def test_a_report_that_cannot_be_written_leaves_the_results(tmp_path, capsys):
    """A folder in the place of the page: the disk is fine, and the page cannot be written."""
    folder = tmp_path / "report"
    reproduce(folder, "quick", ["figure1"])
    (folder / "index.html").unlink()
    (folder / "index.html").mkdir()
    again = ["--settings", "quick", "--only", "figure1", "--fresh", "--engine", "serial"]
    assert main(["reproduce", *again, "--out", str(folder)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"cannot write {folder / 'index.html'}: it is a folder" in err
    assert f"all results are kept in {folder / 'jobs'}: start again" in err
    (folder / "index.html").rmdir()
    news: list[str] = []
    reproduce(folder, "quick", ["figure1"], tell=news.append)
    assert news == ["writing the report"]


def test_a_report_of_another_version(tmp_path, caplog, capsys):
    folder = tmp_path / "report"
    reproduce(folder, "quick", ["figure1"])
    old = folder / "data" / "figure1.safetensors"
    old.write_text("of an earlier version")
    reproduce(folder, "quick", ["figure1"])
    (folder / "jobs" / "figure1.run-abc.jobs").touch()
    reproduce(folder, "quick", ["figure1"])
    assert f"{old} and 0 other files of an earlier version are not used: --fresh removes them" in caplog.text
    assert f"{old} and 1 other files of an earlier version are not used" in caplog.text
    with closing(sqlite3.connect(folder / "jobs" / "jobs.sqlite")) as database:
        database.execute("PRAGMA user_version = 7")
    assert main(["reproduce", "--settings", "quick", "--only", "figure1", "--out", str(folder)]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert "has format 7, this version reads 1: start over (--fresh), give another folder, or install" in err
    with pytest.raises(ValueError, match="has format 7"):
        reproduce(folder, "quick", ["figure4"])  # before any work is done


def test_seconds_of_stored_jobs_count(tmp_path):
    folder = tmp_path / "report"
    (first,) = reproduce(folder, "quick", ["chances"])
    with closing(sqlite3.connect(folder / "jobs" / "jobs.sqlite")) as database, database:
        database.execute("DELETE FROM jobs WHERE function LIKE '%.chances.run'")
        (took,) = database.execute("SELECT sum(seconds) FROM jobs").fetchone()
    (again,) = reproduce(folder, "quick", ["chances"])
    assert 0 < took <= again.seconds
    assert first.results.keys() == again.results.keys()


def test_only_some_experiments(tmp_path):
    outcomes = reproduce(tmp_path / "new" / "report", "quick", ["figure4"])
    assert [o.experiment.name for o in outcomes] == ["figure4"]
    text = (tmp_path / "new" / "report" / "index.html").read_text()
    assert "Not run yet: Figure 1: the domains" in text
    assert page([], "quick").count("<svg") == 0


def test_pictures_on_one_page_share_no_ids():
    svg = plots.svg(plots.figure([plots.maze_panel([[0, 0]], {0: "S"})]))
    one, other = inline(svg, "a", "A <picture>"), inline(svg, "b", "B")
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, other)]
    assert ids[0].isdisjoint(ids[1])
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', one))
    assert {a or b for a, b in used} <= ids[0]
    assert 'aria-label="A &lt;picture&gt;"' in one
    assert "<metadata>" not in one


def test_bad_input_is_named_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="no experiment called 'figure9': there are figure1, figure2, "):
        reproduce(tmp_path / "a", "quick", ["figure9"])
    with pytest.raises(ValueError, match="settings must be one of paper, quick, got 'slow'"):
        reproduce(tmp_path / "a", "slow")
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("years of work")
    with pytest.raises(OSError, match="has other content than a report: give a new or empty folder"):
        reproduce(tmp_path / "b", "quick")
    with pytest.raises(OSError, match=r"thesis.tex: it is a file; give a folder"):
        reproduce(tmp_path / "b" / "thesis.tex", "quick")
    with pytest.raises(OSError, match="cannot create the folder"):
        reproduce(tmp_path / "b" / "thesis.tex" / "deep", "quick")
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["thesis.tex"]
