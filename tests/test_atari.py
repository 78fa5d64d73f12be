"""Atari: the emulator, what is known of games, start states and the protocol of Appendix E."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

from eigenoptions import atari
from eigenoptions.atari import (
    Emulator,
    Start,
    active,
    bits,
    collect,
    complete,
    directions,
    find_starts,
    game_name,
    influence,
    known,
    load_starts,
    paper_order,
    player_bytes,
    published_starts,
    random_directions,
    rank,
    save_starts,
    whereabouts,
)
from eigenoptions.atari import starts as starts_module
from eigenoptions.atari.emulator import games
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import skip_intro
from eigenoptions.parallel import using
from eigenoptions.spectra import Spectrum
from eigenoptions.spectra.gram import Gram
from reproduction.atari.published import rows_of_v


@pytest.fixture(scope="module")
def starts() -> list[Start]:
    return find_starts("Freeway", n=3, bursts=25)


@pytest.fixture(scope="module")
def gram(starts: list[Start]) -> Gram:
    return collect("Freeway", starts, n=900, rng=5, longest=400)


# The emulator


@pytest.mark.parametrize("game", ["Freeway", "MsPacman"])
def test_looking_ahead_leaves_no_trace(game: str) -> None:
    """1,000 frames with every action tried at every frame, beside an emulator that never looks ahead."""
    looking, plain = Emulator(game), Emulator(game)
    looking.begin()
    plain.begin()
    for action in np.random.default_rng(0).integers(looking.n_actions, size=1000).tolist():
        here = looking.save()
        for trial in range(looking.n_actions):
            looking.act(trial)
            looking.restore(here)
        assert looking.act(action) == plain.act(action)
        assert np.array_equal(looking.ram(), plain.ram())
        assert np.array_equal(looking.screen(), plain.screen())
        assert (looking.over, looking.lives) == (plain.over, plain.lives)
        assert looking.key(looking.save()) == plain.key(plain.save())
    assert (plain.acts, looking.acts) == (1000, 1000 * (1 + looking.n_actions))


def test_a_game_begins_again_where_it_began() -> None:
    emulator = Emulator("freeway")
    emulator.begin()
    first = emulator.key(emulator.save())
    for _ in range(3):
        assert emulator.replay([1] * 50) == 0.0
        end = emulator.ram()
        emulator.begin()
        assert emulator.key(emulator.save()) == first
    assert emulator.acts == 150
    emulator.replay([1] * 50)
    assert np.array_equal(emulator.ram(), end)


def test_a_restored_state_shows_its_own_picture() -> None:
    emulator = Emulator("Freeway")
    emulator.replay([1] * 200)
    high = emulator.save()
    key, picture = emulator.key(high), emulator.screen()
    emulator.replay([0] * 5)
    emulator.restore(high)
    shown = emulator.screen()
    assert emulator.key(emulator.save()) == key
    chicken = (picture[:, 42:52] == [252, 252, 84]).all(axis=2)
    assert np.array_equal((shown[:, 42:52] == [252, 252, 84]).all(axis=2).any(axis=1), chicken.any(axis=1))


@pytest.mark.parametrize(
    "spelling",
    ["MontezumaRevenge", "montezuma_revenge", "ALE/MontezumaRevenge-v5", "MontezumaRevengeNoFrameskip-v4"],
)
def test_a_game_may_be_spelt_in_many_ways(spelling: str) -> None:
    assert game_name(spelling) == "MontezumaRevenge"


def test_every_name_is_its_own() -> None:
    assert len(games()) > 100
    assert [game_name(name) for name in games()] == list(games())


def test_wrong_games_and_actions_are_told() -> None:
    with pytest.raises(ValueError, match=r"no game 'Freway' among .*did you mean Freeway"):
        Emulator("Freway")
    with pytest.raises(ValueError, match="'joust' that can be played alone"):
        Emulator("joust")
    with pytest.raises(ValueError, match="must be a name"):
        game_name(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"action must be in 0..2 \(NOOP, UP, DOWN\), got -1"):
        Emulator("Freeway").act(-1)


def test_without_ale_py_the_extra_is_named() -> None:
    code = "import sys; sys.modules['ale_py'] = None\nimport eigenoptions.atari as a\na.Emulator('Freeway')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "pip install 'eigenoptions[atari]'" in found.stderr.splitlines()[-1]


def test_bits_are_numbered_from_the_lowest() -> None:
    ram = np.random.default_rng(0).integers(256, size=(4, 128), dtype=np.uint8)
    slow = [[(int(byte) >> j) & 1 for byte in row for j in range(8)] for row in ram]
    assert bits(ram).astype(int).tolist() == slow
    assert np.array_equal(bits(ram), Ram()(ram))


# Games


def test_the_player_is_drawn_where_memory_says() -> None:
    """The pixels that actions change lie around the place that the position bytes are mapped to."""
    for game, buttons in {"Freeway": [1], "MontezumaRevenge": [5, 3], "MsPacman": [2, 4]}.items():
        emulator, place = Emulator(game), known(game)
        emulator.begin()
        skip_intro(emulator)
        for button in buttons:
            for _ in range(30):
                emulator.act(button)
            x, y = place.to_screen(emulator.ram()[list(place.position)])
            seen = whereabouts(emulator)
            assert seen is not None
            assert abs(seen[0] - x) <= 4, game
            assert abs(seen[1] - y) <= 6, game


def test_whereabouts_leave_the_emulator_as_it_was() -> None:
    emulator = Emulator("Pong")
    emulator.replay([0] * 100)
    before = emulator.key(emulator.save())
    assert whereabouts(emulator) is not None
    assert emulator.key(emulator.save()) == before
    with pytest.raises(ValueError, match="hold must be a whole number from 1"):
        whereabouts(emulator, hold=0)


def test_every_height_of_freeway_is_in_one_place() -> None:
    freeway = known("Freeway")
    heights = np.arange(256)[:, None]
    assert (sum(freeway.inside(name, heights).astype(int) for name in freeway.regions) == 1).all()
    assert freeway.inside("lane 1", (14,))
    assert not freeway.inside("lane 1", (30,))


def test_places_of_one_game_do_not_overlap() -> None:
    for game in ("MontezumaRevenge", "MsPacman"):
        place = known(game)
        grid = np.stack(np.meshgrid(*2 * [np.arange(256)], indexing="ij"), axis=-1)
        assert sum(place.inside(name, grid).astype(int) for name in place.regions).max() == 1
    assert known("MontezumaRevenge").inside("central ladder", (77, 210))
    maze = known("MsPacman")
    assert sum("junction" in name for name in maze.regions) == 36


def test_places_have_the_shape_of_their_screens() -> None:
    """Ms. Pac-Man's first maze is its own mirror image at x = 88, on a grid of 8 x 12; what is climbed has an axis."""
    places = {name: np.array(box) for name, box in known("MsPacman").regions.items()}
    middles = {tuple(box.mean(axis=1).tolist()) for box in places.values()}
    assert middles == {(176 - x, y) for x, y in middles}
    assert {(x if x < 88 else 176 - x) % 8 for x, _ in middles} == {2}
    assert {y % 12 for _, y in middles} == {2}
    room = {name: np.array(box) for name, box in known("MontezumaRevenge").regions.items()}
    climbed = {name: tuple(box[0]) for name, box in room.items() if "ladder" in name or name == "rope"}
    axes = {"left ladder": (21, 4), "central ladder": (77, 4), "rope": (109, 2), "right ladder": (133, 4)}
    assert climbed == {name: (x - reach, x + reach) for name, (x, reach) in axes.items()}


def test_what_is_not_known_of_a_game_is_told() -> None:
    with pytest.raises(ValueError, match="memory of Pong is not known: use whereabouts"):
        known("Pong").to_screen((1,))
    with pytest.raises(ValueError, match="Freeway has the regions bottom, lane 1"):
        known("Freeway").inside("lane 11", (3,))
    with pytest.raises(ValueError, match=r"shape \(..., 2\), got \(3,\)"):
        known("MsPacman").to_screen((1, 2, 3))


# Start states


def test_starts_are_far_apart_and_reached_again(starts: list[Start]) -> None:
    emulator = Emulator("Freeway")
    for start in starts:
        assert start.reach(emulator) == 0.0
        assert emulator.ram()[14] == start.position[0]
        assert start.frames == len(start.actions)
    heights = [start.position[0] for start in starts]
    assert heights[0] == 6
    assert min(abs(a - b) for a in heights for b in heights if a is not b) >= 8


def test_exploration_holds_its_actions(starts: list[Start]) -> None:
    """Nine of ten frames repeat an action; of those that draw one, some draw the same."""
    ways = [np.array(start.actions[:-60]) for start in starts if start.frames > 60]
    changes = sum(int((np.diff(way) != 0).sum()) for way in ways)
    assert 0 < changes < 0.15 * sum(len(way) for way in ways)


def test_a_game_without_a_safe_beginning_begins_where_the_player_gets_control(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []
    monkeypatch.setattr(starts_module, "INTRO_FRAMES", 64)
    monkeypatch.setattr(starts_module, "_screens_differ", lambda *_: tried.append(0) or len(tried) > 2)
    monkeypatch.setattr(starts_module, "_rests", lambda _: False)
    emulator = Emulator("Freeway")
    emulator.begin()
    for _ in range(16):
        emulator.act(0)
    third = emulator.ram()
    emulator.begin()
    assert skip_intro(emulator) == 16
    assert len(tried) == 8
    assert np.array_equal(emulator.ram(), third)


def test_the_same_seed_finds_the_same_starts(starts: list[Start]) -> None:
    assert find_starts("Freeway", n=3, bursts=25, rng=np.random.default_rng(0)) == starts
    assert find_starts("Freeway", n=3, bursts=25, rng=1) != starts


def test_the_player_is_found_in_unknown_games() -> None:
    """Where AtariARI (Anand et al., 2019) knows the player's bytes to be."""
    for game, expected in {
        "Freeway": {14},
        "Seaquest": {70, 97},
        "SpaceInvaders": {28},
        "Pong": {51},
    }.items():
        emulator = Emulator(game)
        emulator.begin()
        skip_intro(emulator)
        before = emulator.key(emulator.save())
        assert expected <= set(player_bytes(emulator)), game
        assert emulator.key(emulator.save()) == before


def test_starts_of_an_unknown_game() -> None:
    told: list[tuple[int, int]] = []
    found = find_starts("Seaquest", n=4, bursts=25, progress=lambda *p: told.append(p))
    assert {start.watch for start in found} == {(70, 97)}
    assert len({start.position for start in found}) == 4
    emulator = Emulator("Seaquest")
    for start in found:
        start.reach(emulator)
        assert emulator.lives == 4
    assert (told[0], told[-1]) == ((0, 25), (25, 25))


def test_influence_tells_the_joystick_from_the_cars() -> None:
    emulator = Emulator("Freeway")
    emulator.replay([1] * 40)
    share = influence(emulator, [emulator.save()])
    assert share[14] == 1.0
    assert 0 < (share > 0).sum() < 64
    with pytest.raises(ValueError, match="no states"):
        influence(emulator, [])


def test_too_few_starts_are_counted() -> None:
    with pytest.raises(ValueError, match=r"\d+ of 20 start states were found in Freeway .* raise bursts"):
        find_starts("Freeway", n=20, bursts=2)
    for bursts in (0, 2**70):
        with pytest.raises(ValueError, match=r"bursts must be a whole number in 1\.\.1000000, got"):
            find_starts("Freeway", bursts=bursts)
    with pytest.raises(ValueError, match=r"n must be a whole number in 1\.\.512, got 513"):
        find_starts("Freeway", n=513)


def test_starts_are_kept_as_plain_data(tmp_path: Path, starts: list[Start]) -> None:
    file = tmp_path / "starts.json"
    save_starts(file, starts)
    assert load_starts(file, "freeway") == starts
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(ValueError, match="start states of Freeway, not of Pong"):
        load_starts(file, "Pong")
    text = json.loads(file.read_text())
    file.write_text(json.dumps({**text, "format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        load_starts(file)
    file.write_text("[]")
    with pytest.raises(ValueError, match="damaged or holds no start states"):
        load_starts(file)
    with pytest.raises(ValueError, match="all of one game"):
        save_starts(file, [])


def test_starts_of_another_game_or_version_are_refused(starts: list[Start]) -> None:
    with pytest.raises(ValueError, match="Freeway cannot be reached in Pong"):
        starts[0].reach(Emulator("Pong"))
    moved = Start("Freeway", starts[1].actions, (14,), (99,))
    with pytest.raises(ValueError, match=r"instead of \(99,\) in Freeway: .* find them again"):
        moved.reach(Emulator("Freeway"))


# The protocol


def test_the_collection_is_a_set_of_differences(starts: list[Start], gram: Gram) -> None:
    """The slow twin: play the same random episodes by hand, with a Python set."""
    seen: set[bytes] = set()
    emulator, turn = Emulator("Freeway"), 0
    while len(seen) < 900:
        for i, start in enumerate(starts):
            emulator.begin()
            generator = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(turn, i)))
            last = bits(emulator.ram()).astype(np.int8)
            for action in (*start.actions, *generator.integers(3, size=400).tolist()):
                emulator.act(action)
                now = bits(emulator.ram()).astype(np.int8)
                seen.add((now - last).tobytes())
                last = now
        turn += 1
    T = np.stack([np.frombuffer(row, dtype=np.int8) for row in seen if any(row)]).astype(np.float64)
    assert len(gram) == len(T)
    assert np.array_equal(gram.matrix, T.T @ T)


def test_every_engine_collects_the_same_bytes(starts: list[Start], gram: Gram) -> None:
    told: list[tuple[int, int]] = []
    with using("processes", workers=2):
        again = collect("Freeway", starts, n=900, rng=5, longest=400, progress=lambda *p: told.append(p))
    assert np.array_equal(again.sample(500, 3).matrix, gram.sample(500, 3).matrix)
    assert told[-1] == (900, 900)
    assert not np.array_equal(collect("Freeway", starts, n=900, rng=6, longest=400).matrix, gram.matrix)


def test_wrong_collections_are_told(starts: list[Start]) -> None:
    with pytest.raises(
        ValueError, match=r"of 900 new transitions were seen in 1 rounds of 1 episodes of Freeway"
    ):
        collect("Freeway", starts[:1], n=900, longest=10, rounds=1)
    with pytest.raises(
        ValueError, match=r"in \d rounds of .* the last three without anything new: ask for fewer"
    ):
        collect("Freeway", starts[:1], longest=1, coding=Ram(addresses=(14,)))
    with pytest.raises(ValueError, match="start states of Freeway do not fit Pong"):
        collect("Pong", starts)
    with pytest.raises(ValueError, match="there are no start states"):
        collect("Pong", [])
    with pytest.raises(ValueError, match="longest must be a whole number from 1, got 0"):
        collect("Freeway", starts, longest=0)


def test_directions_are_right_singular_vectors(gram: Gram) -> None:
    found = directions(gram, sample=800, rng=1)
    G = gram.sample(800, 1).matrix
    s = np.linalg.svd(G, compute_uv=False)
    assert rank(found) == np.linalg.matrix_rank(G)
    assert np.allclose(2 * found.values[::-1][: rank(found)], s[: rank(found)])
    V = complete(found)
    assert np.allclose(V.T @ V, np.eye(1024), atol=1e-9)
    first = V[:, : rank(found)]
    assert np.allclose(G @ first, first * s[: rank(found)], atol=1e-8 * s[0])
    assert np.allclose(G @ V[:, rank(found) :], 0, atol=1e-9 * s[0])
    assert np.array_equal(found.vectors[:, paper_order(found)[2]], V[:, 2])
    assert np.array_equal(active(found), G.diagonal() > 0)


def test_wrong_samples_are_told(gram: Gram) -> None:
    with pytest.raises(ValueError, match=rf"sample must be in 1..{len(gram)}.*got 25000: collect more"):
        directions(gram)
    with pytest.raises(ValueError, match="tol must be in"):
        directions(gram, 100, tol=1.0)


def test_rows_of_v_are_what_the_published_lines_give() -> None:
    T = np.random.default_rng(0).integers(-1, 2, size=(40, 8)).astype(np.float64)
    # The published code, line by line; numpy's V is the transpose.
    _, s, V = np.linalg.svd(T)
    eigenpurposes = V.transpose()
    spectrum = Spectrum(0.5 * s[::-1] ** 2, V[::-1].T, "incidence", n_zero=0)
    assert np.array_equal(rows_of_v(spectrum), eigenpurposes)
    flipped = rows_of_v(spectrum, rng=1)
    assert np.array_equal(np.abs(flipped), np.abs(eigenpurposes))
    assert not np.array_equal(flipped, eigenpurposes)


@pytest.mark.parametrize("inside", ["features", "data"])
def test_random_directions_live_where_they_should(gram: Gram, inside: str) -> None:
    spectrum = directions(gram, sample=None)
    basis = random_directions(spectrum, 3, inside=inside)
    assert basis.shape == (rank(spectrum), 1024)
    assert np.allclose(basis @ basis.T, np.eye(len(basis)))
    assert not basis[:, ~active(spectrum)].any()
    null = spectrum.vectors[:, : spectrum.n_zero]
    assert (np.abs(basis @ null).max() < 1e-9) == (inside == "data")
    assert np.array_equal(basis, random_directions(spectrum, 3, inside=inside))


def test_wrong_random_directions_are_told() -> None:
    with pytest.raises(ValueError, match="must be a whole number from 1, got 0"):
        random_directions(0)
    with pytest.raises(ValueError, match="inside must be one of features, data"):
        random_directions(3, inside="anywhere")


def test_the_authors_starts_are_where_their_actions_lead() -> None:
    for game, points in (("Freeway", 1.0), ("MontezumaRevenge", 100.0), ("MsPacman", 110.0)):
        emulator, found = Emulator(game), published_starts(game)
        assert len(found) == 6
        assert all(start.frames % 5 == 0 for start in found)
        # The last one has crossed the road, has the key, or has eaten.
        assert found[-1].reach(emulator) == points
    with pytest.raises(ValueError, match="of Freeway, MontezumaRevenge, MsPacman, got Pong: use find_starts"):
        published_starts("Pong")


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        # Floats were cut off, and numbers of no action reached the emulator.
        (lambda e: atari.play(e, e.save(), [[0.5, 1.0]]), r"actions must be numbers in 0..2 of shape"),
        (lambda e: atari.play(e, e.save(), [[0, 3]]), r"actions must be numbers in 0..2 of shape"),
        (lambda e: atari.play(e, e.save(), [[-1]]), r"actions must be numbers in 0..2 of shape"),
        (lambda e: atari.play(e, e.save(), [0, 1]), r"actions must be numbers in 0..2 of shape"),
        (
            lambda e: atari.follow(e, e.save(), None, None),
            "chart must be of type Chart, got NoneType: make one",
        ),
        (lambda e: atari.register("Pong"), "game must be of type Game, got str: describe it"),
        (lambda e: atari.bits(3), r"memory must be bytes, 0..255, of shape \(..., 128\), got int64 of shape"),
        (lambda e: atari.bits(np.full(128, 256)), r"memory must be bytes, 0..255"),
        (lambda e: atari.bits(np.full(128, -1)), r"memory must be bytes, 0..255"),
        (lambda e: atari.bits(np.zeros(128)), r"memory must be bytes, 0..255, .* got float64"),
    ],
)
def test_what_is_no_action_chart_game_or_memory_is_refused(call: Any, complaint: str) -> None:
    before = dict(atari.games.GAMES)
    with pytest.raises((ValueError, TypeError), match=complaint):
        call(Emulator("Freeway"))
    assert before == atari.games.GAMES


def test_the_ends_of_what_a_byte_holds_are_accepted() -> None:
    assert atari.bits([255, 0]).tolist() == [True] * 8 + [False] * 8
    assert atari.play(emulator := Emulator("Freeway"), emulator.save(), [[0, 2]]).watched.shape[0] == 1
