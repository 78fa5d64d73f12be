"""One game from its name to a folder: the command, its pictures, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eigenoptions import load_linear_options
from eigenoptions.atari import Emulator, Game, chart, find_starts, games, load_starts, register
from eigenoptions.cli import main
from eigenoptions.studio.gallery import Gallery
from reproduction.atari import experiment, run, settings
from reproduction.atari.run import run_game

SERIAL = ["--quick", "--engine", "serial"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("atari")
    assert main(["atari", "freeway", "--out", str(out), *SERIAL]) == 0
    return out


def test_all_that_a_game_leaves(folder: Path) -> None:
    here = folder / "freeway"
    page = (here / "index.html").read_text(encoding="utf-8")
    assert "Freeway" in page
    assert "Highlighted options" in page
    assert "http" not in page.split("<svg")[0]
    for name in ("starts.png", "where.png", "heights.png"):
        assert (here / name).read_bytes()[:4] == b"\x89PNG"
        assert name in page
    for name in ("rollouts", "effects", "levels", "means", "starts", "highlights"):
        assert f"{name}.csv" in page
        assert len((here / f"{name}.csv").read_text().splitlines()) > 1
    options = load_linear_options(here / "options.safetensors")
    assert options.provenance["game"] == "Freeway"
    assert options.labels[:2] == ("#0+", "#0-")
    assert len(load_starts(here / "starts.json", "Freeway")) == settings("Freeway", "quick")["starts"]


def test_studio_reads_the_folder(folder: Path) -> None:
    (game,) = Gallery(folder).index()["games"]
    assert game["name"] == "Freeway"
    assert game["options"]
    for option in game["options"]:
        clip = folder / option["clip"]
        assert clip.read_bytes()[:6] == b"GIF89a"
        assert clip.stat().st_size < 1_000_000
        assert option["heatmap"]
        assert option["histogram"]
        assert option["note"]


def test_a_second_run_plays_nothing_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "freeway").glob("*.csv")}
    done: list[int] = []
    speeds: list[float] = []
    again = run_game(
        "Freeway",
        folder,
        "quick",
        progress=lambda n, total: done.append(n),
        speed=speeds.append,
    )
    assert not speeds
    assert done
    assert 0 not in done
    assert again.frames > 0
    assert before == {path.name: path.read_bytes() for path in (folder / "freeway").glob("*.csv")}


def test_results_of_other_settings_are_not_mixed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atari", "Freeway", "--out", str(folder), "--engine", "serial"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "holds results of other settings (--quick)" in told
    assert "--fresh" in told
    (folder / "freeway" / "settings.json").write_text("{")
    with pytest.raises(FileExistsError, match=r"settings\.json is not of a run of a game"):
        run_game("Freeway", folder, "quick")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["Freewy"], "did you mean Freeway"),
        (["Freeway", "--quick", "--full"], "give --full or --quick, not both"),
        (["Freeway", "--paper", "--full"], "give --paper or --full, not both"),
        (["Combat"], "no game 'Combat' that can be played alone"),
    ],
)
def test_what_is_refused(
    given: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["atari", *given, "--out", str(tmp_path / "out")]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "freeway").mkdir()
    (tmp_path / "freeway" / "index.html").write_text("mine")
    with pytest.raises(FileExistsError, match="freeway has other content than results of a game"):
        run_game("Freeway", tmp_path, "quick")
    assert [p.name for p in tmp_path.rglob("*.*")] == ["index.html"]


def _make_the_default_tiny(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default, the way that works, in a size for tests."""
    usual = experiment(game)
    few = {"singular": {"many": 1, "end": "small"}, "random": {"bases": 2, "many": 1}, "walk": {"many": 1}}
    way = {**usual.settings["default"]["way"], "plan": 8}
    tiny = {**usual.settings["quick"], "bursts": 10, "frames": 16, "way": way, "kinds": few, "variants": []}
    small = replace(usual, settings={**usual.settings, "default": tiny})
    monkeypatch.setattr(run, "experiment", lambda game: small)


def test_a_game_of_unknown_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _make_the_default_tiny("Pong", monkeypatch)
    assert main(["atari", "Pong", "--out", str(tmp_path), "--json", "--engine", "serial"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["game"] == "Pong"
    # Standard error is no terminal here: one line per stage, and per quarter of it.
    lines = printed.err.splitlines()
    assert lines[0] == "Pong: start states"
    assert "Pong: collections and roll-outs" in lines
    assert any(line.startswith("Pong: collections and roll-outs: ") for line in lines)
    (game,) = Gallery(tmp_path).index()["games"]
    assert all(option["histogram"] is None and option["heatmap"] for option in game["options"])
    rows = np.genfromtxt(tmp_path / "pong" / "rollouts.csv", delimiter=",", names=True)
    assert rows.size
    assert "score" in (rows.dtype.names or ())


@pytest.mark.parametrize("game", ["Backgammon", "Pacman"])
def test_games_without_a_noop_and_with_another_screen(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backgammon's minimal action set has no NOOP; Pacman has no fire button and 250 lines."""
    _make_the_default_tiny(game, monkeypatch)
    assert Emulator(game).noop == 0
    assert run_game(game, tmp_path).highlights
    here = tmp_path / game.lower()
    assert (here / "index.html").exists()
    options = load_linear_options(here / "options.safetensors")
    assert options.n_actions == len(Emulator(game).actions) - (game == "Backgammon")


def test_a_planted_game_is_used_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One entry with the player's position in Pong: in Python, on the command line and in the studio."""
    monkeypatch.setattr(games, "GAMES", dict(games.GAMES))
    register(Game("Pong", (51,), {"top": ((0, 99),)}, ((None, 0.0, 140.0), (0, 1.0, -7.0))))
    assert {start.watch for start in find_starts("pong", n=2, bursts=10)} == {(51,)}
    assert chart("Pong", find_starts("Pong", n=1, bursts=5), limit=4).watch == (51,)
    _make_the_default_tiny("Pong", monkeypatch)
    assert main(["atari", "Pong", "--out", str(tmp_path), "--json", "--engine", "serial"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["id"] == "pong-ours-way"
    assert load_linear_options(tmp_path / "pong" / "options.safetensors").provenance["hold"] == 8
    (game,) = Gallery(tmp_path).index()["games"]
    assert game["options"]
    assert all(option["histogram"] for option in game["options"])


def test_an_interrupt_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.atari.run.run_game", interrupted)
    assert main(["atari", "freeway", "--out", str(tmp_path), *SERIAL]) == 130
    jobs = tmp_path / "freeway" / "jobs"
    said = f"stopped: 0 jobs finished and kept in {jobs}; the same command continues"
    assert capsys.readouterr().err.splitlines()[-1] == said
