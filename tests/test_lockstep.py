"""Lock-step roll-outs against options rolled out alone, on real games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ale_py")

from eigenoptions.atari import rollouts
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import lockstep, on_a_grid
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rollouts import Rollouts, Rules
from reproduction.atari.published import published_rollouts
from tests.reference import lonely

GAMES = {"Freeway": (14,), "MontezumaRevenge": (42, 43), "MsPacman": (10, 16)}

Started = dict[str, tuple[Emulator, Any]]


@pytest.fixture(scope="module")
def games() -> Started:
    """Each game some frames after its beginning, where the player can move."""
    found = {}
    for game, frames in (("Freeway", 20), ("MontezumaRevenge", 60), ("MsPacman", 270)):
        emulator = Emulator(game)
        for t in range(frames):
            emulator.act(1 if t % 3 else 2)
        found[game] = (emulator, emulator.save())
    return found


def directions(coding: Ram, n: int, seed: int) -> np.ndarray:
    """Unit vectors, the second half those of the first with the other sign."""
    e = np.random.default_rng(seed).normal(size=(n // 2, coding.width))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    return np.concatenate([e, -e])


def assert_as_alone(
    emulator: Emulator, state: Any, e: np.ndarray, coding: Ram, frames: int, **how: Any
) -> Rollouts:
    alone = dict(how)
    if how.pop("published", False):
        together = published_rollouts(emulator, state, e, coding, frames, Rules(rng=5, **how))
    else:
        together = lockstep(emulator, state, e, coding, frames, rng=5, **how)
    for i, direction in enumerate(on_a_grid(e, coding).tolist()):
        actions, watched, stopped, score, length, died = lonely(
            emulator, state, direction, coding, frames, index=i, seed=5, **alone
        )
        assert together.actions[i].tolist() == actions + [-1] * (frames - length)
        assert together.watched[i, :length].tolist() == watched
        assert not together.watched[i, length:].any()
        assert together.stopped[i].tolist() == stopped + [False] * (frames - len(stopped))
        assert (together.score[i], together.length[i], together.died[i]) == (score, length, died)
    return together


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"after": "noop"},
        {"after": "random"},
        {"after": "stop"},
        {"hold": 4},
        {"published": True, "after": "noop"},
        {"published": True, "after": "random", "hold": 2},
    ],
    ids=str,
)
def test_together_as_alone(games: Started, game: str, how: dict[str, Any]) -> None:
    emulator, state = games[game]
    found = assert_as_alone(
        emulator, state, directions(Ram(), 4, 1), Ram(), 10, watch=GAMES[game], until="game", **how
    )
    if how.get("after") != "stop":
        hold = how.get("hold", 1)
        decisions = (-(-found.length // hold)).sum()
        assert found.acts < decisions * emulator.n_actions * hold


@pytest.mark.parametrize(
    ("game", "how"),
    [
        ("Freeway", {"depth": 3, "gamma": 0.9}),
        ("Freeway", {"depth": 2, "gamma": 1.0, "hold": 4, "after": "random"}),
        ("Freeway", {"depth": 4, "gamma": 0.5, "hold": 2, "after": "stop"}),
        ("MsPacman", {"depth": 2, "gamma": 0.9, "hold": 4, "after": "noop"}),
    ],
    ids=str,
)
def test_plans_together_as_alone(games: Started, game: str, how: dict[str, Any]) -> None:
    emulator, state = games[game]
    assert_as_alone(emulator, state, directions(Ram(), 4, 3), Ram(), 7, watch=GAMES[game], **how)


@pytest.mark.parametrize(
    "coding", [Ram("bytes"), Ram("onehot"), Ram("thermometer", steps=16, addresses=(4, 14, 16))], ids=str
)
def test_every_coding_together_as_alone(games: Started, coding: Ram) -> None:
    emulator, state = games["Freeway"]
    assert_as_alone(emulator, state, directions(coding, 4, 2), coding, 8, watch=(14,))
    assert_as_alone(emulator, state, directions(coding, 2, 2), coding, 4, depth=2, gamma=0.9)


def doomed() -> tuple[Emulator, Any]:
    """Montezuma's Revenge, in the air beside the ladder: whatever is done, the fall is deadly."""
    emulator = Emulator("MontezumaRevenge")
    for _ in range(60):
        emulator.act(0)
    walk = emulator.actions.index("LEFT")
    lives, saved = emulator.lives, []
    while emulator.lives == lives:
        saved.append(emulator.save())
        emulator.act(walk)
    return emulator, saved[-6]


@pytest.mark.parametrize("how", [{"hold": 1}, {"hold": 4}, {"hold": 6, "depth": 2, "gamma": 0.9}], ids=str)
def test_a_lost_life_ends_it_or_does_not(how: dict[str, Any]) -> None:
    emulator, state = doomed()
    coding = Ram("bytes", addresses=(42, 43))
    e = np.array([[1.0, 0.3], [-0.4, 0.2]])[: 3 - how.get("depth", 1)]
    once = assert_as_alone(emulator, state, e, coding, 12, watch=(42,), **how)
    assert once.died.all()
    assert (once.length < 12).all()
    assert (once.frontier[once.length.max() + 4 :] == 0).all()
    on = assert_as_alone(emulator, state, e, coding, 12, watch=(42,), until="game", after="noop", **how)
    assert on.died.all()
    assert (on.length == 12).all()


def test_the_end_of_the_game_ends_it() -> None:
    emulator = Emulator("Freeway")
    emulator.begin()
    saved = []
    while not emulator.over:
        if emulator.acts > 8100:
            saved.append(emulator.save())
        emulator.act(0)
    state = saved[-5]
    found = assert_as_alone(
        emulator, state, directions(Ram(), 4, 1), Ram(), 12, until="game", hold=3, watch=(14,)
    )
    assert found.length.tolist() == [5] * 4
    # Time was up.
    assert not found.died.any()
    emulator.restore(saved[-1])
    emulator.act(0)
    with pytest.raises(ValueError, match="the game is over in this state"):
        lockstep(emulator, emulator.save(), directions(Ram(), 2, 1))


def test_merging_changes_nothing(games: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator, state = games["MsPacman"]
    e = directions(Ram(), 30, 4)

    def both() -> list[Rollouts]:
        return [
            lockstep(emulator, state, e, None, frames, watch=(10, 16), depth=depth, gamma=0.9)
            for depth, frames in ((1, 16), (2, 6))
        ]

    merged = both()
    # States are compared byte by byte, also where all hashes are equal.
    monkeypatch.setattr(rollouts, "hash", lambda key: 0, raising=False)
    assert [r.acts for r in both()] == [r.acts for r in merged]
    monkeypatch.setattr(rollouts.Rolling, "_merged", lambda self, node, known: node)
    apart = both()
    for with_, without in zip(merged, apart, strict=True):
        for name in ("actions", "watched", "stopped", "score", "length", "died"):
            np.testing.assert_array_equal(getattr(with_, name), getattr(without, name))
        assert with_.acts <= without.acts
        assert (with_.frontier <= without.frontier).all()
    assert sum(r.acts for r in merged) < sum(r.acts for r in apart) / 2


def test_an_option_does_not_depend_on_its_company(games: Started) -> None:
    emulator, state = games["MsPacman"]
    e = directions(Ram(), 30, 6)
    rules = Rules("random", watch=(10, 16), rng=3)
    for roll in (lockstep, published_rollouts):
        all_, few = (roll(emulator, state, some, Ram(), 12, rules) for some in (e, e[:7]))
        np.testing.assert_array_equal(all_.actions[:7], few.actions)
        np.testing.assert_array_equal(all_.watched[:7], few.watched)


def test_same_seed_same_bytes_and_the_emulator_stays_where_it_was(games: Started) -> None:
    emulator, state = games["MontezumaRevenge"]
    emulator.act(3)
    here = emulator.save()
    emulator.act(2)
    then = emulator.key(emulator.save()), emulator.ram().tobytes(), emulator.screen().tobytes()
    emulator.restore(here)
    before = emulator.key(here), emulator.ram().tobytes()
    e = directions(Ram(), 6, 7)
    reports: list[tuple[int, int]] = []
    one, same, other = (
        lockstep(emulator, state, e, None, 6, after="random", rng=seed, progress=lambda *x: reports.append(x))
        for seed in (1, np.random.default_rng(8), 2)
    )
    assert reports[:6] == [(t, 6) for t in range(1, 7)]
    assert one.actions.tobytes() != other.actions.tobytes()
    again = lockstep(emulator, state, e, None, 6, after="random", rng=np.random.default_rng(8))
    assert same.actions.tobytes() == again.actions.tobytes()
    assert (emulator.key(emulator.save()), emulator.ram().tobytes()) == before
    with pytest.raises(RuntimeError, match="enough"):
        lockstep(emulator, state, e, None, 6, progress=_enough)
    assert emulator.key(emulator.save()) == before[0]
    emulator.act(2)
    assert (emulator.key(emulator.save()), emulator.ram().tobytes(), emulator.screen().tobytes()) == then


def _enough(done: int, frames: int) -> None:
    raise RuntimeError("enough")


def test_the_sign_turns_the_choice_around(games: Started) -> None:
    """At one state -e is best where e is worst, and where all actions gain, -e stops."""
    emulator, state = games["MsPacman"]
    e = directions(Ram(), 40, 9)
    found = lockstep(emulator, state, e, None, 1, after="stop")
    assert not ((found.length[:20] == 0) & (found.length[20:] == 0)).all()
    both = (found.length[:20] == 1) & (found.length[20:] == 1)
    assert (found.actions[:20, 0] != found.actions[20:, 0])[both].all()
    nothing = lockstep(emulator, state, np.zeros((2, 1024)), None, 3)
    assert nothing.stopped.all()
    # The first of equal actions.
    assert (nothing.actions == 0).all()


def test_gamma_zero_is_myopic(games: Started) -> None:
    emulator, state = games["Freeway"]
    e = directions(Ram(), 10, 10)
    plain, deep = lockstep(emulator, state, e, None, 10), lockstep(emulator, state, e, None, 10, depth=3)
    assert plain.actions.tobytes() == deep.actions.tobytes()
    assert plain.acts == deep.acts
    assert repr(plain).startswith("Rollouts(10 options, 10 frames")


def test_a_plan_sees_past_a_step_that_costs(games: Started) -> None:
    """A goal two steps up, behind a lower place: the myopic option stays, the one that plans goes."""
    emulator, state = games["Freeway"]
    emulator.restore(state)
    y = int(emulator.ram()[14])
    coding = Ram("onehot", addresses=(14,))
    e = np.zeros((1, 256))
    for frames in range(1, 4):
        emulator.act(1)
        e[0, emulator.ram()[14]] = -0.1 if frames < 3 else 1.0
    assert e[0, y] == 0.0
    myopic = lockstep(emulator, state, e, coding, 3, after="noop", watch=(14,))
    ahead = lockstep(emulator, state, e, coding, 3, after="noop", watch=(14,), depth=3, gamma=0.9)
    assert myopic.watched[0, :, 0].tolist() == [y] * 3
    assert e[0, ahead.watched[0, -1, 0]] == 1.0


def test_bad_input_is_refused(games: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator, state = games["Freeway"]
    e = directions(Ram(), 2, 1)
    for direction, how, complaint in (
        (e[:0], {}, "there are no options"),
        (e[:, :5], {}, r"direction must be finite numbers of shape \(n, 1024\)"),
        (e * np.nan, {}, "direction must be finite"),
        (e, {"frames": 0}, "frames must be a whole number from 1, got 0"),
        (e, {"hold": 0}, "hold must be a whole number from 1"),
        (e, {"depth": 1.5}, "depth must be a whole number from 1, got 1.5"),
        (e, {"gamma": 1.1}, r"gamma must be in \[0, 1\], got 1.1"),
        (e, {"after": "wait"}, "after must be one of best, noop, random, stop, got 'wait'"),
        (e, {"until": "dawn"}, "until must be one of life, game"),
        (e, {"watch": (128,)}, r"watch must be addresses in 0..127, got \(128,\)"),
    ):
        with pytest.raises(ValueError, match=complaint):
            lockstep(emulator, state, direction, **how)
    with pytest.raises(
        ValueError, match="the published program looks one step ahead: depth must be 1, got 2"
    ):
        published_rollouts(emulator, state, e, Ram(), 5, Rules(depth=2, gamma=0.5))
    with pytest.raises(TypeError, match="patience"):
        lockstep(emulator, state, e, patience=3)
    monkeypatch.setattr(rollouts, "MAX_STATES_AHEAD", 10)
    with pytest.raises(ValueError, match="more than 10 states: lower depth"):
        lockstep(emulator, state, e, None, 5, depth=4, gamma=0.9)
