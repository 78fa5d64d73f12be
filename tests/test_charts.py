"""Charts of real games: the table against the emulator, options followed against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

from eigenoptions.atari import charts
from eigenoptions.atari.charts import MAX_VISITORS, Chart, chart, follow, plan
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.games import known
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import Start
from eigenoptions.discovery import discover
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve
from tests.reference import followed

# Actions that lead to where the player can move.
WAYS = {
    "Freeway": ((0,) * 60, (1,) * 100),
    "MontezumaRevenge": ((0,) * 60, (0,) * 60 + (3,) * 16 + (0,) * 30),
    "MsPacman": ((0,) * 270, (0,) * 270 + (2,) * 30),
}
SIZES = {"Freeway": 12, "MontezumaRevenge": 40, "MsPacman": 60}

Charted = dict[str, tuple[Emulator, list[Any], Chart]]


def starts_of(game: str) -> list[Start]:
    """Start states of a game, with the positions that the emulator comes to."""
    emulator, watch = Emulator(game), known(game).position
    found = []
    for way in WAYS[game]:
        emulator.replay(way)
        found.append(Start(game, way, watch, tuple(emulator.ram()[list(watch)].tolist())))
    return found


@pytest.fixture(scope="module")
def games() -> Charted:
    """Of each game an emulator, the states that its starts lead to, and a small chart."""
    made = {}
    for game, size in SIZES.items():
        emulator, starts, states = Emulator(game), starts_of(game), []
        for start in starts:
            start.reach(emulator)
            states.append(emulator.save())
        made[game] = (emulator, states, chart(game, starts, limit=size))
    return made


def random_options(drawn: Chart, n: int, seed: int) -> OptionSet:
    """Any actions anywhere, and TERMINATE in about a tenth of the states."""
    rng = np.random.default_rng(seed)
    policy = rng.integers(0, drawn.mdp.n_actions, (n, len(drawn)))
    policy[rng.random(policy.shape) < 0.1] = -1
    return OptionSet(policy, drawn.mdp.n_actions, state_space=drawn.mdp.fingerprint)


@pytest.mark.parametrize("game", SIZES)
def test_a_chart_has_one_state_for_each_key(games: Charted, game: str) -> None:
    _, _, drawn = games[game]
    assert len(drawn) <= SIZES[game]
    assert len(np.unique(drawn.keys, axis=0)) == len(drawn) == drawn.mdp.n_states
    assert drawn.watch == tuple(sorted({*known(game).position, *known(game).context}))
    assert drawn.at(drawn.keys).tolist() == list(range(len(drawn)))
    assert [drawn.locate(ram) for ram in drawn.ram] == list(range(len(drawn)))
    assert drawn.mdp.start == drawn.starts[0] == 0
    assert drawn.mdp.coords is not None
    pixels = known(game).to_screen(drawn.ram[:, list(known(game).position)])
    assert np.array_equal(drawn.mdp.coords[:, ::-1], pixels)


@pytest.mark.parametrize("game", SIZES)
def test_every_state_and_transition_is_that_of_its_visitor(games: Charted, game: str) -> None:
    """Visitors are reached again from the starts through the table, and every action is tried once more."""
    emulator, states, drawn = games[game]
    successors = drawn.mdp.successors
    assert successors is not None
    standing: dict[int, Any] = {}
    queue: list[Any] = list(states)
    checked = 0
    while queue:
        state = queue.pop(0)
        emulator.restore(state)
        ram = emulator.ram()
        i = drawn.locate(ram)
        if i in standing or not np.array_equal(drawn.ram[i], ram):
            # Another visitor of this state.
            continue
        standing[i] = state
        for action in range(emulator.n_actions):
            emulator.restore(state)
            lives = emulator.lives
            for _ in range(drawn.hold):
                emulator.act(action)
                lost = emulator.over or emulator.lives < lives
                if lost:
                    break
            there = drawn.locate(emulator.ram())
            assert drawn.lost[i, action] == lost
            assert drawn.beyond[i, action] == (there < 0 and not lost)
            assert successors[i, action] == (i if lost or there < 0 else there)
            if there >= 0 and not lost:
                queue.append(emulator.save())
            checked += 1
    assert len(standing) == len(drawn)
    assert checked == successors.size


def test_the_same_chart_again(games: Charted) -> None:
    _, _, drawn = games["MontezumaRevenge"]
    again = chart("montezuma_revenge", starts_of("MontezumaRevenge"), limit=40)
    assert again.mdp.fingerprint == drawn.mdp.fingerprint
    assert again.frames == drawn.frames
    for name in ("ram", "lost", "beyond"):
        assert getattr(again, name).tobytes() == getattr(drawn, name).tobytes()


def test_frames_are_counted(games: Charted) -> None:
    """No life is lost in Freeway: every action of every visitor is held to its end."""
    _, _, drawn = games["Freeway"]
    assert not drawn.lost.any()
    leaves = (drawn.mdp.successors != np.arange(len(drawn))[:, None]) | drawn.beyond  # type: ignore[operator]
    # One visitor per state was enough.
    assert leaves.any(axis=1).all()
    assert drawn.frames == sum(map(len, WAYS["Freeway"])) + len(drawn) * 3 * drawn.hold


def test_a_large_limit_closes_the_chart() -> None:
    """With a step of one frame the chicken reaches every height up to the top, and there are no other states."""
    start = starts_of("Freeway")[:1]
    drawn = chart("Freeway", start, hold=1, limit=400)
    assert not drawn.beyond.any()
    assert len(drawn) < 400
    assert "complete" in repr(drawn)
    heights = drawn.keys[:, 0]
    assert set(heights.tolist()) >= set(range(6, 170))


def test_visitors_that_cannot_leave_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one coordinate of Ms. Pac-Man many states are alike; some of their first visitors stand at a wall."""
    starts = starts_of("MsPacman")
    drawn = chart("MsPacman", starts, watch=(10,), limit=30)
    monkeypatch.setattr(charts, "MAX_VISITORS", 1)
    first = chart("MsPacman", starts, watch=(10,), limit=30)
    assert np.array_equal(first.keys, drawn.keys)
    others = np.flatnonzero((first.ram != drawn.ram).any(axis=1))
    stays = [
        (c.mdp.successors == np.arange(30)[:, None]).all(axis=1) & ~c.beyond.any(axis=1)
        for c in (first, drawn)
    ]
    assert len(others)
    assert stays[0][others].all()
    assert not stays[1][others].any()
    same = np.setdiff1d(np.arange(30), others)
    assert np.array_equal(first.mdp.successors[same], drawn.mdp.successors[same])  # type: ignore[index]
    more, rest = divmod(drawn.frames - first.frames, drawn.mdp.n_actions * drawn.hold)
    assert rest == 0
    assert len(others) <= more <= (MAX_VISITORS - 1) * stays[0].sum()


def test_one_state_is_a_chart() -> None:
    """By a byte of the score all states are one."""
    start = starts_of("Freeway")[0]
    drawn = chart("Freeway", [start], watch=(103,))
    assert drawn.mdp.successors.tolist() == [[0, 0, 0]]  # type: ignore[union-attr]
    # Nobody came after the first was tried.
    assert drawn.frames == start.frames + 3 * drawn.hold


def test_the_nearest_state_has_the_same_room_if_there_is_one(games: Charted) -> None:
    _, _, drawn = games["MontezumaRevenge"]
    assert drawn.watch == (3, 42, 43)
    room, x, y = drawn.keys[0].tolist()
    assert drawn.at([room, x, y]) == 0
    odd = [[room, 255, 0], [room + 1, x, y]]
    assert drawn.at(odd).tolist() == [-1, -1]
    far, other = drawn.at(odd, nearest=True).tolist()
    apart = np.abs(drawn.keys[:, 1:].astype(int) - [255, 0]).max(axis=1)
    assert far == apart.argmin()
    assert other == 0
    ram = drawn.ram[0].copy()
    ram[3] += 1
    assert drawn.locate(ram) == -1
    assert drawn.locate(ram, nearest=True) == 0


def test_plans_are_optimal_for_the_potentials_of_memory(games: Charted) -> None:
    """The solver of the library on e . phi, which for a byte of the key is that byte."""
    _, _, drawn = games["MontezumaRevenge"]
    options = plan(
        drawn, [[0.0, 1.0], [-1.0, 0.0]], Ram("bytes", addresses=(42, 43)), 0.95, labels=["up", "left"]
    )
    x, y = drawn.ram[:, 42] / 256, drawn.ram[:, 43] / 256
    expected = solve(drawn.mdp, [Purpose(y), Purpose(-x)], 0.95)
    assert np.array_equal(options.policy, expected.policy)
    assert options.labels == ("up", "left")
    assert options.provenance["gamma"] == 0.95
    assert options.provenance["game"] == "MontezumaRevenge"
    taken = options.policy >= 0
    dead = np.take_along_axis(
        (drawn.lost | drawn.beyond)[None], np.where(taken, options.policy, 0)[..., None], axis=2
    )
    # To lose a life is worth nothing.
    assert not dead[..., 0][taken].any()
    e = np.random.default_rng(0).normal(size=(3, 1024))
    bits = np.unpackbits(drawn.ram, axis=1, bitorder="little").astype(float)
    for option, f in zip(plan(drawn, e), e @ bits.T, strict=True):
        stop = option.termination
        steps = f[drawn.mdp.successors] - f[:, None]
        assert stop.any()
        assert (steps[stop] <= 1e-9 * np.abs(f).max()).all()


@pytest.mark.parametrize("game", SIZES)
@pytest.mark.parametrize(("after", "until"), [("noop", "life"), ("stop", "game"), ("noop", "game")])
def test_following_together_is_following_alone(games: Charted, game: str, after: Any, until: Any) -> None:
    emulator, states, drawn = games[game]
    options = random_options(drawn, 5, seed=1)
    # Two are there twice.
    options = options + options[:2]
    watch, frames = known(game).position, 75
    emulator.restore(states[0])
    emulator.act(1)
    before = emulator.key(emulator.save())
    ran = follow(emulator, states[1], drawn, options, frames, after=after, until=until, watch=watch)
    assert emulator.key(emulator.save()) == before
    assert (ran.actions[:2] == ran.actions[5:]).all()
    total = 0
    for i, option in enumerate(options):
        actions, watched, stopped, score, length, died = followed(
            emulator, states[1], drawn, watch, option.policy, frames, after=after, until=until, watch=watch
        )
        assert ran.actions[i].tolist() == actions + [-1] * (frames - length)
        assert ran.watched[i, :length].tolist() == watched
        assert not ran.watched[i, length:].any()
        assert np.flatnonzero(ran.stopped[i]).tolist() == np.flatnonzero(stopped).tolist()
        assert (ran.score[i], ran.length[i], ran.died[i]) == (score, length, died)
        total += length
    # Equal ways are emulated once.
    assert 0 < ran.acts < total
    assert ran.frontier[0] == 1
    assert ran.frontier.max() <= 5


def test_eigenoptions_of_a_games_own_graph(games: Charted) -> None:
    """Section 3 in an Atari game: `discover` on the chart, and the options in the emulator."""
    emulator, states, _ = games["Freeway"]
    drawn = chart("Freeway", starts_of("Freeway")[:1], limit=12)
    eigen = discover(drawn.mdp, n_options=4)
    ran = follow(emulator, states[0], drawn, eigen, 120, watch=(14,))
    ends = ran.watched[:, -1, 0].astype(int)
    heights = drawn.keys[:, 0].astype(int)
    # The Fiedler vector of a path is monotone: one sign climbs to the top of the chart, the other stays below.
    assert abs(ends[:2].max() - heights.max()) <= 8
    assert ends[:2].min() <= heights.min() + 8
    assert ran.stopped[:2, -1].any()


def test_a_game_without_known_bytes() -> None:
    game = "Breakout"
    emulator = Emulator(game)
    emulator.begin()
    start = Start(game, (1,) * 8, (), ())
    drawn = chart(game, [start], limit=6)
    assert drawn.mdp.coords is None
    assert 1 <= len(drawn.watch) <= 4
    assert drawn.watch == chart(game, [start], limit=2).watch
    start.reach(emulator)
    ran = follow(emulator, emulator.save(), drawn, random_options(drawn, 3, 0), 24)
    assert ran.length.tolist() == [24] * 3


def test_progress_and_bad_input(games: Charted) -> None:
    emulator, states, drawn = games["Freeway"]
    starts = starts_of("Freeway")
    seen: list[tuple[int, int]] = []
    chart("Freeway", starts, limit=4, progress=lambda done, found: seen.append((done, found)))
    assert seen[-1] == (4, 4)
    assert [done for done, _ in seen] == [1, 2, 3, 4]
    for message, arguments in {
        "no starts": {"starts": []},
        "limit must be at least the number of different starts, got 1": {"starts": starts, "limit": 1},
        "limit must be a whole number from 1": {"starts": starts, "limit": 0},
        "hold must be a whole number from 1": {"starts": starts, "hold": 0},
        "at least one address": {"starts": starts, "watch": ()},
        "addresses in 0..127": {"starts": starts, "watch": (128,)},
        "cannot be reached in Freeway": {"starts": starts_of("MsPacman")},
    }.items():
        with pytest.raises(ValueError, match=message):
            chart("Freeway", **arguments)
    options = random_options(drawn, 1, 0)
    with pytest.raises(ValueError, match="of another state space"):
        follow(emulator, states[0], drawn, random_options(games["MsPacman"][2], 1, 0))
    with pytest.raises(ValueError, match="cannot be followed in MsPacman"):
        follow(games["MsPacman"][0], states[0], drawn, options)
    with pytest.raises(ValueError, match="no options"):
        follow(emulator, states[0], drawn, options[:0])
    for name, value in {"frames": 0, "after": "best", "until": "death", "watch": (-1,)}.items():
        with pytest.raises(ValueError, match=f"{name} must be"):
            follow(emulator, states[0], drawn, options, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="direction must be"):
        plan(drawn, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="labels must have one entry"):
        plan(drawn, np.zeros((2, 1024)), labels=["a"])
    with pytest.raises(ValueError, match=r"keys must have shape \(..., 1\)"):
        drawn.at([1, 2])
    with pytest.raises(ValueError, match="ram must have shape"):
        drawn.locate([1, 2])
