"""The reproduction: cached jobs, folders, the report, and its claims.

Every claim is tested on both sides of its rule.
"""

from __future__ import annotations

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import eigenoptions as eo
from reproduction import __main__ as command
from reproduction import lab as laboratory
from reproduction import report as reports
from reproduction import thresholds
from reproduction.claims import VERDICTS, Claim, Finding
from reproduction.experiment import list_experiments, load_experiment
from reproduction.experiments import (
    ablations,
    every_goal,
    figure6,
    figure7,
    multiple_tasks,
    random_options,
)
from reproduction.lab import Lab, open_lab
from reproduction.page import Section, write_page
from reproduction.readings import FINAL, STRICTER
from reproduction.report import Outcome, write_chapter, write_report
from reproduction.runs.diffusion import compute_diffusion_times
from reproduction.runs.learning import learn
from reproduction.runs.options import (
    draw_basis,
    find_clusters,
    make_eigenoptions,
    make_options,
    take_authors_basis,
)
from reproduction.runs.published import learn_in_two_steps
from reproduction.statistics import Difference

ROOT = Path(__file__).parents[2]
EXPERIMENTS = [
    experiment
    for experiment in map(load_experiment, list_experiments())
    if not experiment.is_game
]
Data = dict[str, pd.DataFrame]
Edit = Callable[[Data], None]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Outcome]]:
    """Folder and outcomes of a quick report."""
    folder = tmp_path_factory.mktemp("reproduction") / "report"
    lab = Lab(folder / "cache", quick=True)
    outcomes = [command.run_experiment(lab, experiment) for experiment in EXPERIMENTS]
    chapters = [write_chapter(folder, outcome, lab) for outcome in outcomes]
    write_report(folder, chapters, lab)
    return folder, {outcome.experiment.name: outcome for outcome in outcomes}


# Cached jobs


def add(*, a: int, b: int = 0) -> int:
    if a < 0:
        raise ArithmeticError
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"{a} ")
    return a + b


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Arguments with which `add` was called."""
    path = tmp_path / "calls"
    path.touch()
    monkeypatch.setenv("CALLS", str(path))
    return lambda: path.read_text().split()


def test_lab_computes_each_job_once(tmp_path, calls):
    progress: list[tuple[int, int]] = []
    for _ in range(2):
        lab = Lab(tmp_path / "cache")
        lab.progress = lambda done, total: progress.append((done, total))
        assert lab.pmap(add, [{"a": 1, "b": 2}, {"a": 3}, {"a": 3}]) == [3, 3, 3]
    assert calls() == ["1", "3"]
    assert progress[-1] == (3, 3)
    assert lab.pmap(add, [{"a": 1, "b": 5}]) == [6]
    assert lab.seconds > 0


def test_lab_interrupted_run_computes_only_what_is_missing(tmp_path, calls):
    lab = Lab(tmp_path / "cache")
    with pytest.raises(ArithmeticError):
        lab.pmap(add, [{"a": 1}, {"a": 2}, {"a": -1}, {"a": 3}])
    assert lab.pmap(add, [{"a": 1}, {"a": 2}, {"a": 3}]) == [1, 2, 3]
    assert calls() == ["1", "2", "3"]
    assert not [
        path
        for path in (tmp_path / "cache").rglob("*")
        if path.is_file() and path.suffix != ".joblib"
    ]


def test_lab_other_source_is_another_job(tmp_path, calls, monkeypatch):
    lab = Lab(tmp_path / "cache")
    lab.pmap(add, [{"a": 1}])
    monkeypatch.setattr(laboratory, "source_version", lambda module: "edited")
    lab.pmap(add, [{"a": 1}])
    assert calls() == ["1", "1"]


def test_lab_other_stored_results_are_another_source(tmp_path, monkeypatch):
    """Games are judged from tables beside the module that reads them."""
    module = ModuleType("reader")
    module.__file__ = str(tmp_path / "reader.py")
    (tmp_path / "reader.py").touch()
    monkeypatch.setitem(sys.modules, "reader", module)
    stored = tmp_path / "results" / "game.csv.gz"
    stored.parent.mkdir()

    versions = set()
    for content in (b"one", b"two"):
        stored.write_bytes(content)
        laboratory.source_version.cache_clear()
        versions.add(laboratory.source_version("reader"))
    assert len(versions) == 2


# Folders and commands


def test_open_lab_refuses_a_second_run(tmp_path):
    with (
        open_lab(tmp_path / "report"),
        pytest.raises(BlockingIOError, match="another run"),
        open_lab(tmp_path / "report"),
    ):
        pass
    with open_lab(tmp_path / "report"):
        pass


def test_open_lab_refuses_other_content(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for folder in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(OSError, match="content"), open_lab(folder):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_command_runs_one_experiment_alone_and_lists_the_others(tmp_path):
    program = (
        "import sys; from reproduction.__main__ import main; main(sys.argv[1:]);"
        "print(*[m for m in sys.modules if m.startswith('reproduction.experiments.')])"
    )
    arguments = ["--quick", "--only", "figure1", "--out", str(tmp_path / "report")]
    process = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0 claims" in process.stdout
    assert process.stdout.splitlines()[-1] == "reproduction.experiments.figure1"

    text = (tmp_path / "report" / "index.html").read_text()
    assert 'id="claim-walls"' in text
    assert "Not run yet" in text
    assert "Figure 7: accumulating reward" in text


def test_command_shows_experiments_again_that_were_run_before(tmp_path, monkeypatch):
    folder = str(tmp_path / "report")
    page = tmp_path / "report" / "index.html"
    command.main(["--quick", "--only", "lemmas", "--out", folder])
    command.main(["--quick", "--only", "bottlenecks", "--out", folder])
    assert {"lemma-3.1", "closest-doorway"} <= {
        address.removeprefix("#claim-") for address in Page(page.read_text()).addresses
    }
    # What other sources have written is no longer shown.
    monkeypatch.setattr(reports, "_hash_shared_sources", lambda: "edited")
    command.main(["--quick", "--only", "bottlenecks", "--out", folder])
    assert 'id="claim-lemma-3.1"' not in page.read_text()
    assert "Appendix A: lemmas, and any finite MDP" in page.read_text()


def test_command_refuses_an_unknown_experiment(tmp_path):
    with pytest.raises(ValueError, match="figure9"):
        command.main(["--only", "figure9", "--out", str(tmp_path / "report")])
    assert not (tmp_path / "report").exists()


def test_command_error_is_one_line():
    arguments = [sys.executable, "-m", "reproduction", "--out", "pyproject.toml"]
    process = subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert process.stderr.count("\n") == 1


def test_examples_of_the_reproduction_hold():
    shared = ("options", "diffusion")
    for name in (
        *("claims", "experiment", "lab", "page", "readings", "statistics"),
        *(f"runs.{part}" for part in shared),
        "experiments.theorem31",
    ):
        module = import_module(f"reproduction.{name}")
        assert doctest.testmod(module).failed == 0


# The report


class Page(HTMLParser):
    """Open tags, ids and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "iframe")
        if tag not in ("meta", "br", "img", "input", "source"):
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [
            value for name, value in attrs if name in ("href", "src", "xlink:href")
        ]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_complete_and_needs_nothing_from_outside(report):
    folder, outcomes = report
    text = (folder / "index.html").read_text()
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    for address in page.addresses:
        if address.startswith("#"):
            assert address[1:] in page.ids
        elif not address.startswith("data:image/svg"):
            assert (folder / address).is_file()
    for url in re.findall(r'https?://[^"\s<>]+', text):
        assert "www.w3.org" in url
    for outcome in outcomes.values():
        assert f'<section id="{outcome.experiment.name}">' in text
        for claim in outcome.claims:
            assert text.count(f'id="claim-{claim.id}"') == 1
    # That of Figure 6 stands at the top, too, and both have a narrow one.
    assert text.count("data:image/svg+xml") == len(EXPERIMENTS) + 3


def test_claims_follow_from_the_csv_files(report):
    folder, outcomes = report
    listed = json.loads((folder / "results.json").read_text())["claims"]
    n_claims = 0
    for name, outcome in outcomes.items():
        data = {
            table: pd.read_csv(folder / "data" / f"{name}-{table}.csv")
            for table in outcome.data
        }
        again = outcome.experiment.judge(data)
        for claim, judged in zip(outcome.claims, again, strict=True):
            found = (judged.id, judged.verdict, judged.measured)
            assert found == (claim.id, claim.verdict, claim.measured)
            if claim.is_demonstration:
                assert claim.id not in listed
                continue
            entry = listed[claim.id]
            assert entry["verdict"] == claim.verdict
            assert entry["measured"] == claim.measured
            assert entry["readings"] == judged.verdicts
            assert entry["readings"]["main"] == claim.verdict
            is_unanimous = set(entry["readings"].values()) == {claim.verdict}
            assert entry["edge"] != is_unanimous
            n_claims += 1
    assert len(listed) == n_claims


def test_edge_follows_from_the_readings():
    agreeing = Finding(tests=[True], readings={FINAL: [True, True]}, measured="")
    assert not agreeing.edge
    turning = Finding(tests=[True], readings={FINAL: [True, False]}, measured="")
    assert turning.edge
    assert turning.verdicts == {"main": "holds", FINAL: "partly"}
    with pytest.raises(ValueError, match="readings"):
        Finding(tests=[True], readings={"by eye": [True]}, measured="")


def test_page_escapes_text_and_shows_tables(tmp_path):
    claim = Claim(
        id="a-b",
        sentence="1 < 2",
        tests=[True],
        measured="<b>",
        section="ours",
        table=pd.DataFrame({"x": [0.5, np.nan]}),
    )
    write_page(
        tmp_path / "page.html",
        "A & B",
        [Section("one", "One", "text", ["<i>"], [claim])],
    )
    text = (tmp_path / "page.html").read_text()
    for part in ("A &amp; B", "1 &lt; 2", "&lt;b&gt;", "&lt;i&gt;", ">0.500</td>"):
        assert part in text
    assert "nan" not in text.lower()


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_experiment_has_claims_or_notes_in_plain_words(experiment, report):
    outcome = report[1][experiment.name]
    notes = list(experiment.write_notes(outcome.data))
    assert outcome.claims or notes

    texts = [claim.measured + claim.evidence for claim in outcome.claims]
    for note in notes:
        # A paragraph, or a caption with its table.
        texts.append(note if isinstance(note, str) else note[0])
    words = set(re.findall(r"\w+", " ".join(texts)))
    assert not {"nan", "None", "inf"} & words

    for claim in outcome.claims:
        assert claim.verdict in VERDICTS
        assert claim.id
        assert claim.section
        assert claim.sentence
        assert claim.measured
        assert claim.evidence


# The numbers of the paper


def setting(module: Any, name: str) -> Any:
    return inspect.signature(module.list_jobs).parameters[name].default


def test_settings_are_those_of_the_paper():
    """Section 4.3 and Appendix D."""
    episodes = {"open-room": 250, "i-maze": 250, "four-rooms": 500}
    for module in (figure7, ablations):
        assert setting(module, "episodes") == episodes
        # The last stands for all.
        assert setting(module, "options") == (0, 2, 4, 8, 16, 32, 64, 128, 256)
        assert setting(module, "runs") == 100
    assert setting(random_options, "options") == 64
    assert setting(random_options, "runs") == 100
    assert setting(random_options, "sets") == 24
    assert setting(random_options, "episodes") == 500
    assert setting(multiple_tasks, "options") == 64
    assert setting(multiple_tasks, "runs") == 100
    assert setting(multiple_tasks, "episodes") == 250
    assert setting(every_goal, "many") == 64
    assert setting(figure6, "n") is None
    assert inspect.signature(eo.q_learning).parameters["max_steps"].default == 100


def test_verdict_that_turns_under_another_reading_is_on_the_edge(report):
    """Other readings of Figure 6 may give the opposite: the claim says so only then."""
    outcome = report[1]["figure6"]
    for later, says_so in ((30.0, False), (60.0, True)):
        data = dict(outcome.data)
        curve(200, 40)(data)
        times = data["readings"].n_options.map({0: 100.0}).fillna(later)
        data["readings"] = data["readings"].assign(diffusion_time=times)
        edges = {claim.id: claim.edge for claim in outcome.experiment.judge(data)}
        assert bool(edges["enough-options-help"]) == says_so


def test_limits_keep_their_values():
    assert set(thresholds.FIXED_LATE) <= vars(thresholds).keys()
    assert thresholds.FEW == 8
    assert thresholds.FIRST == (1, 2, 3)
    assert thresholds.GREATLY == 0.5
    assert thresholds.SEVERAL == 1000
    assert thresholds.NEARLY_ALL == 0.9
    assert thresholds.ALMOST_ALL == 0.9
    assert thresholds.ROBUST == 0.8
    assert thresholds.MAJOR == 2
    assert thresholds.OFTEN == 0.9
    assert thresholds.NEAR == 1
    assert thresholds.MARGIN == 0.05
    assert thresholds.UNLIKELY == 0.05
    assert thresholds.DENSE == 0.9
    assert thresholds.STRONG == 0.8


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.05, 0.08])
def test_more_data_decides_and_never_turns_an_answer(mean: float) -> None:
    """As the interval around the same difference narrows, an answer stays."""
    widths = (0.5, 0.1, 0.06, 0.04, 0.01, 0.001)
    for ask in (Difference.above, Difference.below, Difference.equal):
        for sign in (1, -1):
            middle = sign * mean
            differences = [Difference(middle, middle - w, middle + w) for w in widths]
            answers = [ask(difference) for difference in differences]
            decided = [answer for answer in answers if answer is not None]
            assert answers == [None] * (len(widths) - len(decided)) + decided
            assert len(set(decided)) <= 1
            is_on_the_limit = ask == Difference.equal and mean == thresholds.MARGIN
            assert decided or is_on_the_limit


def test_readings_that_the_paper_leaves_open_are_told_from_limits_of_ours() -> None:
    finding = Finding(
        tests=[True], readings={FINAL: [False], STRICTER: [False]}, measured=""
    )
    assert finding.turns.keys() == {FINAL, STRICTER}
    assert finding.opens.keys() == {FINAL}


def test_results_say_which_verdicts_replay_files(report) -> None:
    results = json.loads((report[0] / "results.json").read_text())
    replays = {name: claim["replays"] for name, claim in results["claims"].items()}
    files = {name: path for name, path in replays.items() if path}
    assert files == {"closest-doorway": "reproduction/authors/starts.csv"}
    assert results["replayed"] == 1
    assert results["computed"] == len(replays) - 1


def test_nothing_scrolls_inside_the_page_on_a_telephone() -> None:
    css = (ROOT / "reproduction" / "report.css").read_text()
    wide, *narrow = css.split("@media (max-width")
    rules = [rule for rule in wide.split("}") if "overflow" in rule]
    assert all("overflow-wrap" in r or ".contents" in r for r in rules)
    assert not re.search(r"overflow(-x|-y)?:(auto|scroll)", "".join(narrow))


# Options and learners of the experiments


def test_make_eigenoptions_with_reordered_actions_keeps_values_and_terminations(i_maze):
    plain = make_eigenoptions(i_maze)
    reordered = make_eigenoptions(i_maze, action_order=(3, 2, 1, 0))
    np.testing.assert_allclose(plain.value, reordered.value, atol=1e-12)
    np.testing.assert_array_equal(plain.termination, reordered.termination)


def test_make_eigenoptions_with_a_tolerance_terminates_in_more_states(four_rooms):
    plain = make_eigenoptions(four_rooms, 64)
    tolerant = make_eigenoptions(four_rooms, 64, tolerance=0.001)
    assert (tolerant.termination | ~plain.termination).all()
    assert tolerant.termination.sum() > plain.termination.sum()


def test_make_eigenoptions_shuffled_are_the_same_options(i_maze):
    plain = make_eigenoptions(i_maze)
    shuffled = make_eigenoptions(i_maze, shuffle=1)
    assert sorted(plain.labels) == sorted(shuffled.labels)
    assert plain.labels != shuffled.labels


def test_published_learner_without_options_learns_as_q_learning_does(i_maze):
    settings: Any = {
        "maze": "i-maze",
        "options": {"n": 0},
        "runs": 100,
        "episodes": 60,
        "seed": 1,
    }
    two_steps = learn_in_two_steps(**settings)
    again = learn_in_two_steps(**settings)
    np.testing.assert_array_equal(two_steps, again)
    whole = learn(**settings, number=0)
    assert abs(two_steps.mean() - whole.mean()) < 0.1


def test_read_options_of_maps_of_letters(tmp_path, four_rooms):
    ours = eo.discover(four_rooms, method="bottleneck")
    for number, policy in enumerate(ours.policy, start=1):
        rows = [["X"] * 13 for _ in range(13)]
        for (row, column), action in zip(four_rooms.coords, policy, strict=True):
            rows[row][column] = "URDLT"[action]
        text = "\n".join(["13,13", *("".join(row) for row in rows)])
        (tmp_path / f"4rooms_split_{number}.mdp").write_text(text)
    again = make_options(four_rooms, "files", folder=str(tmp_path))
    assert again is not None
    np.testing.assert_array_equal(again.policy, ours.policy)


def test_random_basis_spans_the_same_eigenspaces(open_room):
    spectrum = eo.spectrum(eo.graph(open_room))
    for other in (draw_basis(spectrum, 1), take_authors_basis(spectrum, open_room)):
        for cluster in find_clusters(spectrum):
            both = np.hstack([spectrum.vectors[:, cluster], other.vectors[:, cluster]])
            assert np.linalg.matrix_rank(both, tol=1e-5) == cluster.stop - cluster.start


def test_walls_as_states_add_options_that_do_nothing(i_maze):
    with_walls = make_eigenoptions(i_maze, walls=True)
    plain = make_eigenoptions(i_maze)
    # 17 rows of 5 cells, both signs.
    assert len(with_walls) == 2 * 17 * 5
    np.testing.assert_array_equal(with_walls.policy[:16], plain.policy[:16])
    assert with_walls.initiation[16:].any(axis=1).sum() == len(plain) - 22


def test_diffusion_times_of_both_solvers_agree(four_rooms):
    options = make_options(four_rooms, n=20)
    assert options is not None
    times, with_extra_step = compute_diffusion_times(four_rooms, options, [0, 3, 20])
    exact = eo.diffusion_curve(four_rooms, options)[[0, 3, 20]]
    np.testing.assert_allclose(times, exact, rtol=1e-6)
    assert with_extra_step[0] == pytest.approx(times[0])
    assert (with_extra_step[1:] > times[1:]).all()


# Every claim on both sides of its rule


def put(table: str, **values: Any) -> Edit:
    """Set columns of a table; a function gets each row."""

    def edit(data: Data) -> None:
        rows = data[table].copy()
        for name, value in values.items():
            if callable(value):
                rows[name] = [value(row) for row in rows.itertuples()]
            else:
                rows[name] = value
        data[table] = rows

    return edit


def keep(data: Data) -> None:
    """The quick data are on this side already."""


def both(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit_all(data: Data) -> None:
        for edit in edits:
            edit(data)

    return edit_all


def noisy(mean: Callable[[Any], float]) -> Callable[[Any], float]:
    """Numbers around a mean, with little noise that differs from row to row."""
    rng = np.random.default_rng(0)
    return lambda row: mean(row) + rng.normal(scale=1e-3)


def returns(mean: Callable[[Any], float]) -> Edit:
    """Returns of runs around a mean."""
    return put("runs", mean_return=noisy(mean), late_return=noisy(mean))


def stop_at(domain: str, cells: dict[str, tuple[int, int]]) -> Edit:
    """Let the options of a domain terminate in these cells only."""

    def edit(data: Data) -> None:
        rows = [
            (domain, reading, label, *cell)
            for label, cell in cells.items()
            for reading in data["options"].reading.unique()
        ]
        columns = ["domain", "reading", "option", "row", "column"]
        others = data["stops"][data["stops"].domain != domain]
        data["stops"] = pd.concat([others, pd.DataFrame(rows, columns=columns)])

    return edit


def second_stops_at(cell: tuple[int, int]) -> Edit:
    """Let both signs of e2 terminate in a cell of the 4-room domain."""
    return stop_at("four-rooms", {"e2+": cell, "e2-": cell})


def sets(random: Callable[[Any], float], own: float = 0.9) -> Edit:
    """Mean returns of random sets, in both tables, and of eigenoptions."""
    one = returns(lambda row: random(row) if row.kind == "random" else own)
    return both(one, put("many", mean_return=noisy(random)))


def diffusion(random: float, own: float) -> Edit:
    """Diffusion times with options, until all but two are there; 100 without."""

    def value(row: Any) -> float:
        if row.n_options == 0:
            return 100.0
        if row.n_options >= 18:
            return 50.0
        return random if row.kind == "random" else own

    return put("diffusion", diffusion_time=value, with_extra_step=value)


def curve(first: float, later: float) -> Edit:
    """Diffusion time with one to four options, and with more; 100 without."""
    times = {0: 100.0, **dict.fromkeys(range(1, 5), first)}

    def value(row: Any) -> float:
        return times.get(row.n_options, later)

    return put("diffusion", diffusion_time=value, with_extra_step=value)


def reached(bottleneck: float, own: float) -> Edit:
    """Steps to the corners by kind of options; the time inside is their inverse."""
    steps = {
        "primitive actions": 100.0,
        "bottleneck options": bottleneck,
        "eigenoptions": own,
    }
    return put(
        "sets",
        steps_to_corners=lambda row: steps[row.kind],
        time_inside=lambda row: 1 / steps[row.kind],
    )


def learners(eigen: float, doors: float, bare: float, near: float = 0.0) -> Edit:
    """Mean return by agent.

    Bottleneck options gain `near` where the goal is beside a doorway.
    """
    means = {
        "eigenoptions": eigen,
        "bottleneck options": doors,
        "primitive actions": bare,
    }

    def edit(data: Data) -> None:
        is_close = data["tasks"].goal_to_doorway <= 1
        close = set(data["tasks"].task[is_close])

        def mean(row: Any) -> float:
            if row.agent == "bottleneck options" and row.task in close:
                return means[row.agent] + near
            return means[row.agent]

        returns(mean)(data)

    return edit


def by_count(few: float, more: float, best: float) -> Edit:
    """Mean return with 2 or 4 options, with 16, and with more; one half without."""
    means = {0: 0.5, 2: few, 4: few, 16: more, 38: best, 64: best}
    return returns(lambda row: means[row.n_options])


def walked(**values: float) -> Edit:
    """Columns of sets of walks: these values with options, one half without."""
    edits = [
        put("sets", **{name: lambda row, v=value: v if row.n_options else 0.5})
        for name, value in values.items()
    ]
    return both(*edits)


def dithers(own: float, without: float) -> Edit:
    """Shares of a walk's time around its start, and of its steps that are undone."""
    share = noisy(lambda row: own if row.n_options else without)
    return put("walks", around_start=share, undone=share)


def shares(few: float, many: float) -> Edit:
    """Effective share of the states with few and with many options."""
    by_number = {0: 1.0, 2: few, 8: few}
    return put("sets", effective_states=lambda row: by_number.get(row.n_options, many))


CORNERS = {"e2+": (1, 1), "e2-": (10, 10), "e3+": (1, 10), "e3-": (10, 1)}
ROOMS = {f"e{i}{sign}": (2, 2) for i in (2, 3, 4) for sign in "+-"}
DOORWAY = (3, 6)
ORDER = random_options.SHUFFLED
NEAREST = put("many", steps_to_goal=lambda row: 9 * (row.set % 2))

# For each claim an edit of the quick data after which it holds, and one after which it
# does not.
EDITS: dict[str, tuple[Edit, Edit]] = {
    "domains": (put("domains", actions=4), put("domains", actions=5)),
    "walls": (keep, put("domains", of_these_stay=0)),
    "pvf-rooms": (put("pvf", e2=1.0, e2_to_e4=1.0), put("pvf", e2=0.9, e2_to_e4=0.9)),
    "symmetries": (put("symmetries", shown_by=2), put("symmetries", shown_by=9)),
    "opposite-room": (
        stop_at("four-rooms", {"e2+": (2, 10), "e2-": (10, 2)}),
        stop_at("four-rooms", {"e2+": (2, 10), "e2-": (2, 10)}),
    ),
    "peak-centre": (second_stops_at((4, 9)), second_stops_at((11, 1))),
    "peak-corner": (second_stops_at((1, 11)), second_stops_at((11, 1))),
    "theorem-3.1": (keep, put("options", n_stops=0, mean_length=np.inf)),
    "stops-at-maxima": (keep, put("facts", stops_at_maxima=0, stop_at_the_highest=0)),
    "dense-reward": (put("facts", dense=1.0), put("facts", dense=0.5)),
    "discount-timescale": (
        put("options", mean_length=lambda row: 1 + row.gamma),
        put("options", mean_length=1.0),
    ),
    "multiple-options": (keep, put("facts", fewest_in_a_state=1, fewest_of_few=1)),
    "frequencies": (
        put("options", mean_length=lambda row: 9.0 if row.option == "e2+" else 1.0),
        put("options", mean_length=5.0),
    ),
    "undo-dozens": (put("facts", undone=30), put("facts", undone=10)),
    "negative-after": (
        put("facts", negative_after=5, moves_after=5),
        put("facts", negative_after=4, moves_after=5),
    ),
    "finely-timed": (put("facts", finely_timed=0.95), put("facts", finely_timed=0.5)),
    "rates-of-change": (keep, put("facts", fastest=1.0, slowest=1.0, rate_rank=0.0)),
    "whole-state-space": (
        put("options", start_share=0.95),
        put("options", start_share=0.5),
    ),
    "theorem-3.1-any-mdp": (keep, put("mdps", fewest_stops=0)),
    "theorem-3.1-linear": (keep, put("mdps", fewest_stops=0)),
    "lemma-3.1": (keep, put("norms", lemma_3_1=1e9)),
    "lemma-3.2": (keep, put("norms", lemma_3_2=1e9)),
    "proof-bound": (keep, put("mdps", ratio=1.1)),
    "corners": (
        stop_at("open-room", CORNERS),
        stop_at("open-room", dict.fromkeys(CORNERS, (5, 5))),
    ),
    "twice-as-often": (
        put(
            "options",
            n_stops=lambda r: 1 + (r.option == "e4+"),
            mean_length=lambda r: 2.0 - (r.option == "e4+"),
        ),
        put("options", n_stops=1, mean_length=1.0),
    ),
    "corridor": (keep, stop_at("i-maze", {"e2+": (1, 1), "e2-": (1, 1)})),
    "fifth-is-first-doorway": (
        stop_at("four-rooms", ROOMS | {"e5+": DOORWAY}),
        stop_at("four-rooms", ROOMS | {"e2+": DOORWAY}),
    ),
    "first-to-rooms": (
        stop_at("four-rooms", ROOMS),
        stop_at("four-rooms", dict.fromkeys(ROOMS, DOORWAY)),
    ),
    "first-options-hurt": (curve(200, 40), curve(90, 40)),
    "enough-options-help": (curve(200, 40), curve(200, 90)),
    "bottlenecks-increase": (curve(200, 200), curve(90, 90)),
    "corners-less-likely": (reached(200, 50), reached(90, 50)),
    "mitigated": (reached(200, 50), reached(200, 300)),
    "dynamic-programming": (
        keep,
        put("dynamic_programming", swept=1.0, with_options=1.0),
    ),
    "larger-distances": (
        put("walks", farthest=noisy(lambda row: 9.0 if row.n_options else 2.0)),
        put("walks", farthest=noisy(lambda row: 2.0)),
    ),
    "no-dithering": (
        dithers(0.1, 0.5),
        dithers(0.5, 0.5),
    ),
    "small-portion": (
        put("walks", seen_in_1000=noisy(lambda row: 0.9 if row.n_options else 0.2)),
        put("walks", seen_in_1000=noisy(lambda row: 0.9 if not row.n_options else 0.2)),
    ),
    "diffusion-implies-coverage": (
        put(
            "sets",
            diffusion_time=lambda row: row.n_options,
            seen_in_1000=lambda row: -row.n_options,
        ),
        put(
            "sets",
            diffusion_time=lambda row: row.n_options,
            seen_in_1000=lambda row: row.n_options,
        ),
    ),
    "skewed-time": (shares(0.5, 0.9), shares(0.95, 0.9)),
    "bias-with-few": (shares(0.5, 0.9), shares(0.9, 0.5)),
    "between-rooms": (
        walked(room_changes_per_1000=0.9, time_inside=0.01),
        walked(room_changes_per_1000=0.1, time_inside=0.9),
    ),
    "whole-environment": (
        put("walks", steps_to_all=lambda row: np.inf if row.n_options else 100.0),
        put("walks", steps_to_all=100.0),
    ),
    "most-scenarios": (by_count(0.9, 0.9, 0.9), by_count(0.1, 0.1, 0.1)),
    "exceptions-few": (by_count(0.2, 0.8, 0.9), by_count(0.9, 0.9, 0.9)),
    "few-hurt-enough-help": (by_count(0.2, 0.8, 0.9), by_count(0.5, 0.5, 0.5)),
    "best-64": (by_count(0.2, 0.8, 0.9), by_count(0.2, 0.98, 0.85)),
    "robust": (by_count(0.85, 0.85, 0.9), by_count(0.2, 0.3, 0.9)),
    "closest-doorway": (
        put("authors_starts", steps=2, closest_doorway=2),
        put("authors_starts", steps=99, room=lambda row: row.Index % 4 + 1),
    ),
    "doorways-most-visited": (
        put("states", betweenness=lambda row: -row.steps_to_doorway),
        put("states", betweenness=lambda row: row.steps_to_doorway),
    ),
    "planning-not-exploration": (
        put("planning", sweeps=lambda row: row.choices == "primitive actions"),
        put("planning", sweeps=1.0, diffusion_time=1.0),
    ),
    "random-fail-to-reduce": (diffusion(1e6, 50), diffusion(50, 50)),
    "orders-of-magnitude": (diffusion(1e6, 50), diffusion(200, 50)),
    "more-than-random-states": (diffusion(1e6, 50), diffusion(40, 50)),
    "no-run-competitive": (sets(lambda row: 0.4), sets(lambda row: 0.5, own=0.5)),
    "random-not-competitive": (sets(lambda row: 0.4), sets(lambda row: 0.5, own=0.5)),
    "fewer-options-vary": (
        sets(lambda row: 0.5 + 0.1 * (-1) ** row.set * (row.n_options < 16)),
        sets(lambda row: 0.5 + 0.1 * (-1) ** row.set * (row.n_options >= 16)),
    ),
    "near-goal-matters": (
        both(
            NEAREST,
            put("many", mean_return=noisy(lambda row: 0.9 - 0.5 * (row.set % 2))),
        ),
        both(NEAREST, put("many", mean_return=noisy(lambda row: 0.5))),
    ),
    "never-learns": (put("runs", late_return=0.0), put("runs", late_return=1.0)),
    "order-matters": (
        both(
            put(
                "diffusion",
                diffusion_time=lambda row: 10 if row.kind == "eigenoptions" else 99,
            ),
            put("orders", mean_return=lambda row: 0.1 + 0.8 * (row.set == 0)),
            put("orders", kind=lambda row: "eigenoptions" if row.set == 0 else ORDER),
        ),
        both(put("diffusion", diffusion_time=10.0), put("orders", mean_return=0.5)),
    ),
    "bottlenecks-hinder-learning": (learners(0.9, 0.1, 0.5), learners(0.9, 0.8, 0.5)),
    "swap-no-effect": (
        put("further", mean_return=noisy(lambda row: 0.5 + 0.01 * (row.task % 2))),
        put("further", mean_return=noisy(lambda row: 0.5 + 0.3 * (row.task % 2))),
    ),
    "outperform-primitive": (learners(0.9, 0.5, 0.1), learners(0.1, 0.5, 0.9)),
    "not-all-regions": (
        put("ends", ends_of_options=9, ends_or_beside=20),
        put(
            "ends",
            ends_of_options=lambda row: row.states,
            ends_or_beside=lambda row: row.states,
        ),
    ),
    "outperform-bottlenecks-far": (learners(0.9, 0.5, 0.1), learners(0.1, 0.5, 0.9)),
    "bottlenecks-competitive-near": (
        learners(0.9, 0.5, 0.1, 0.3),
        learners(0.9, 0.5, 0.1, -0.3),
    ),
    "lemma-5.1": (keep, put("exact", lemma_error=1.0)),
    "theorem-5.1": (keep, put("exact", residual=1.0)),
    "same-options": (keep, put("exact", same_options=1)),
    "asymptotic": (
        put("sampled", transitions_seen=1.0, same_policy=1.0),
        put("sampled", same_policy=0.5),
    ),
    "fewer-transitions": (
        put("exact", undirected=8, transitions=16),
        put("exact", undirected=88, transitions=99),
    ),
    "fewest-attempts": (
        both(
            put("diffusion", diffusion_time=lambda row: row.set + row.n_options),
            put("goals", mean_return=lambda r: 1 - (r.set + r.n_options) / 999),
        ),
        both(
            put("diffusion", diffusion_time=lambda row: -row.set - row.n_options),
            put("goals", mean_return=lambda r: 1 - (r.set + r.n_options) / 999),
        ),
    ),
    "same-set-many-tasks": (
        put("goals", mean_return=noisy(lambda row: 0.9 if row.n_options else 0.1)),
        put("goals", mean_return=noisy(lambda row: 0.1 if row.n_options else 0.9)),
    ),
}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_claims_come_out_both_ways(experiment, report):
    outcome = report[1][experiment.name]
    for statement in experiment.statements:
        upholds, refutes = EDITS[statement.id]
        for edit, verdict in ((upholds, "holds"), (refutes, "does not hold")):
            data = dict(outcome.data)
            edit(data)
            assert statement.find(data).verdict == verdict, statement.id


def test_every_claim_has_its_edits():
    ids = [
        statement.id
        for experiment in EXPERIMENTS
        for statement in experiment.statements
    ]
    assert sorted(ids) == sorted(EDITS)
