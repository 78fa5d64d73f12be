"""Jobs of the Atari experiments in the real emulator: the same settings, the same bytes; parts agree."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eigenoptions.atari import slow_features
from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rollouts import play
from eigenoptions.atari.slow_features import held_play, lasting_bytes
from eigenoptions.atari.starts import Start
from reproduction import atari
from reproduction.atari.jobs import (
    PAPER,
    _options,
    collection,
    collection_of,
    rollouts,
    starts,
    trace,
)
from reproduction.atari.measures import KINDS, MEASURES, points_of
from reproduction.atari.study import _table, rolled, run

pytest.importorskip("ale_py")

FEW = {"singular": {"many": 3}, "random": {"bases": 2, "many": 1}, "published": {"many": 2}, "constant": {}}


@pytest.fixture(scope="module")
def begun():
    return starts({"game": "Freeway", "starts": 2, "seed": 0, "bursts": 20})


@pytest.fixture
def job(begun):
    return {
        "game": "Freeway",
        "seed": 0,
        "starts": begun,
        "start": 1,
        "transitions": 300,
        "longest": 300,
        "variant": PAPER,
        "frames": 30,
        "until": "game",
        "kinds": {**FEW, "walk": {"many": 2}, "rows": {"many": 2}, "rotated": {"bases": 1, "many": 1}},
    }


def test_a_job_gives_keys_and_measures_of_every_kind(job):
    found = rollouts(job)
    table = found["table"]
    kinds = [KINDS[int(k)] for k in table["kind"]]
    assert {kind: kinds.count(kind) for kind in KINDS} == {
        "singular": 6,
        "random": 4,
        "rotated": 2,
        "rows": 2,
        "published": 2,
        "constant": 3,
        "walk": 2,
    }
    assert set(MEASURES) <= set(table)
    assert set(table["start"]) == {1.0}
    assert found["facts"]["rank"] <= found["facts"]["active"] <= 1024
    again = rollouts(json.loads(json.dumps(job)))
    for name, column in table.items():
        np.testing.assert_array_equal(column, again["table"][name])


def test_several_starts_in_one_job_are_those_starts_alone(job):
    both = rollouts({**job, "start": [0, 1], "kinds": FEW})["table"]
    for number in (0, 1):
        alone = rollouts({**job, "start": number, "kinds": FEW})["table"]
        for name, column in alone.items():
            np.testing.assert_array_equal(column, both[name][both["start"] == number])


def test_a_trace_is_what_was_measured(job):
    table = rollouts({**job, "heights": True})
    rows = [
        {"kind": KINDS[int(k)], "basis": int(b), "direction": int(d), "sign": int(s)}
        for k, b, d, s in zip(
            *(table["table"][n] for n in ("kind", "basis", "direction", "sign")), strict=True
        )
    ]
    some = rows[::4]
    found = trace({**job, "options": some})
    assert found["actions"].shape == (len(some), 30)
    np.testing.assert_allclose(found["positions"][:, :, 0].mean(axis=1), table["table"]["height"][::4])
    counts = np.stack([np.bincount(p // 8, minlength=32) for p in found["positions"][:, :, 0]])
    np.testing.assert_array_equal(counts, table["heights"][::4])


def test_constants_and_walks_need_no_collection(job):
    found = rollouts({**job, "kinds": {"constant": {}, "walk": {"many": 1}}})
    assert found["facts"] is None
    up = found["table"]["direction"] == 1
    assert found["table"]["steady"][up & (found["table"]["kind"] == KINDS.index("constant"))] == 1


def test_given_actions_are_played_from_the_start(begun):
    emulator = Emulator("Freeway")
    start = Start.again("Freeway", begun[0])
    start.reach(emulator)
    state = emulator.save()
    actions = np.array([[1] * 20, [2] * 20], dtype=np.int8)
    found = play(emulator, state, actions, until="game", watch=(14,))
    start.reach(emulator)
    seen = []
    for _ in range(20):
        emulator.act(1)
        seen.append(int(emulator.ram()[14]))
    assert found.watched[0, :, 0].tolist() == seen
    assert found.length.tolist() == [20, 20]


def test_kinds_of_directions_are_what_they_say(job):
    given = {"game": "Freeway", "seed": 0, "starts": job["starts"], "transitions": 300, "longest": 300}
    held = collection(json.dumps({**given, "coding": {"code": "bits"}, "hold": 1}, sort_keys=True))
    many = held.facts()["rank"]
    V = np.stack([held.direction("singular", 0, i) for i in range(many)])
    np.testing.assert_allclose(V @ V.T, np.eye(many), atol=1e-9)
    for kind in ("random", "rotated"):
        B = np.stack([held.direction(kind, 1, i) for i in range(many)])
        np.testing.assert_allclose(B @ B.T, np.eye(many), atol=1e-9)
        inside = np.linalg.norm(
            B @ V.T, axis=1
        )  # of each direction, the part in the span of the singular ones
        assert (inside.min() > 1 - 1e-9) == (kind == "rotated")
    assert held.numbers("singular", 4) == [0, *held.numbers("singular", 4)[1:3], many - 1]
    assert held.numbers("singular", 2, "small") == [many - 2, many - 1]
    assert held.numbers("published") == list(range(1024))


def test_slow_features_have_variance_one(job):
    variant = {"coding": {"code": "bits"}, "hold": 8, "bytes": "lasting", "slow": True}
    given = {
        "game": "Freeway",
        "seed": 0,
        "starts": job["starts"],
        "transitions": 300,
        "longest": 300,
        **variant,
    }
    held = collection(json.dumps(given, sort_keys=True))
    assert 14 in held.coding.addresses  # the chicken's height keeps a trace of what was done
    emulator, rng = Emulator("Freeway"), np.random.default_rng([0, 8])
    episodes, _ = held_play(emulator, [Start.again("Freeway", p) for p in job["starts"]], 8, 200, rng)
    phi = held.coding(np.concatenate(episodes)).astype(float)
    for kind in ("singular", "random"):
        e = np.stack([held.direction(kind, 0, i) for i in range(3)])
        np.testing.assert_allclose((phi @ e.T).var(axis=0, ddof=1), 1.0, rtol=1e-6)


def test_bytes_without_a_trace_are_left_out():
    emulator = Emulator("Freeway")
    emulator.begin()
    found = lasting_bytes(emulator, [emulator.save()])
    assert 14 in found
    assert 4 not in found  # the joystick's echo


def test_where_nothing_lasts_all_bytes_are_taken(job, monkeypatch):
    monkeypatch.setattr(slow_features, "LASTING_SHARE", 2.0)  # more than all states
    emulator = Emulator("Freeway")
    emulator.begin()
    with pytest.raises(
        ValueError, match="no byte of Freeway keeps a trace of the action held: use all bytes"
    ):
        lasting_bytes(emulator, [emulator.save()])
    variant = {**PAPER, "hold": 7, "bytes": "lasting", "slow": True}
    found = collection_of({**job, "variant": variant, "kinds": {"singular": {}}})
    assert found is not None
    assert found.coding == Ram()


def test_collections_with_other_numbers_of_player_bytes_are_joined():
    """In games where the player's bytes are searched, seeds may find two of them, or three."""
    pairs = [
        (
            {"variant": PAPER, "seed": seed},
            {"table": {"kind": np.zeros(2), **dict.fromkeys(axes, np.ones(2)), "dwell": np.ones(2)}},
        )
        for seed, axes in ((1, "xy"), (2, "xyz"))
    ]
    table = _table(pairs, [PAPER["name"]])
    assert table["z"].tolist() == [0, 0, 1, 1]
    assert points_of(table).shape == (4, 3)


def test_planned_options_are_rolled_out_too(job):
    variant = {**PAPER, "name": "planned", "hold": 8, "gamma": 0.9, "plan": 20}
    kinds = {"singular": {"many": 2, "end": "small"}, "random": {"bases": 1, "many": 1}}
    found = rollouts({**job, "start": [0, 1], "variant": variant, "kinds": kinds})
    assert len(found["table"]["kind"]) == 2 * (4 + 2)
    options = [{"kind": "singular", "basis": 0, "direction": 0, "sign": 1}]
    again = trace({**job, "variant": variant, "options": options})
    assert again["actions"].shape == (1, 30)


def test_sizes_and_games():
    for game in (*atari.GAMES, "Breakout"):
        for size in atari.SIZES:
            given = atari.settings(game, size)
            assert json.loads(json.dumps(given)) == given
    assert len(atari.settings("Freeway")["seeds"]) >= 3
    assert atari.settings("MsPacman")["kinds"]["random"]["bases"] >= 10
    with pytest.raises(ValueError, match="size must be one of quick, default, paper, full, got 'huge'"):
        atari.settings("Freeway", "huge")


def test_the_default_is_the_last_way_of_the_full_size():
    """So the command shows what the documents show."""
    for game in (*atari.GAMES, "Breakout"):
        small, full = atari.settings(game, "default"), atari.settings(game, "full")
        last = full["variants"][-1]
        assert {**small["way"], "frames": small["frames"], "kinds": last["kinds"]} == last
        assert small["kinds"] == {**last["kinds"], "constant": {}, "walk": {"many": 8}}
        assert small["seeds"] == full["seeds"]


def test_the_default_way_and_the_starts_of_the_authors():
    few = {"singular": {"many": 2, "end": "small"}, "random": {"bases": 2, "many": 1}}
    tiny = {**atari.settings("Freeway", "quick"), "kinds": {**few, "constant": {}}, "seeds": [1]}
    way = {**atari.settings("Freeway", "default")["way"], "plan": 20}
    last = {**PAPER, "name": "last", "from": 1, "kinds": few, "frames": 20}
    theirs = {**last, "name": atari.AUTHORS, "starts": "authors", "from": 3}
    results = run(
        {**tiny, "way": way, "variants": [theirs, last], "long": []},
        lambda function, jobs: [function(job) for job in jobs],
    )
    assert results["variants"] == [way["name"], atari.AUTHORS, "last"]
    assert next(claim.id for claim in atari.claims(results)) == "freeway-ours-way"
    assert len(results["starts"]) == 2
    own = rolled(results, variant=1)
    assert set(own["start"]) == {0, 1, 2}


def test_a_game_about_which_nothing_is_known_is_studied_too():
    given = {**atari.settings("Breakout", "quick"), "until": "life"}
    results = run(given, lambda function, jobs: [function(job) for job in jobs])
    assert results["regions"] == {}
    assert [claim.section for claim in atari.claims(results)] == ["ours", "ours", "ours"]
    assert atari.notes(results)
    assert len(results["trace_actions"]) == len(results["highlights"])


def test_ends_of_the_spectrum_are_different_directions() -> None:
    plain = starts({"game": "Freeway", "starts": 1, "seed": 0, "bursts": 10})
    job = {
        "game": "Freeway",
        "seed": 0,
        "starts": plain,
        "transitions": 300,
        "longest": 300,
        "variant": PAPER,
    }
    held = collection_of({**job, "kinds": {"singular": {}}})
    assert held is not None
    small, large, spread = (
        [o["direction"] for o in _options({"singular": {"many": 2, "end": end}}, 3, held)][::2]
        for end in ("small", "large", None)
    )
    last = len(held.numbers("singular")) - 1
    assert (small, large, spread) == ([last - 1, last], [0, 1], [0, last])
