"""The study of Atari games: roll-outs, graphs, measures, claims, stored results."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ale_py")

from eigenoptions.atari import Emulator, Ram
from eigenoptions.spectra import Spectrum
from reproduction import atari
from reproduction.atari.collection import Collection, load_collection
from reproduction.atari.game_graph import explore_game
from reproduction.atari.games import GAMES, get_game, load_starts
from reproduction.atari.measures import (
    compare_with_random,
    count_meetings,
    find_reliable,
    mean_agreement,
    measure_rollouts,
)
from reproduction.atari.rollouts import Rollouts, look_ahead, roll_out, round_to_grid
from reproduction.atari.settings import Kind, Variant, make_variants
from reproduction.atari.stored import RESULTS, load_results
from reproduction.experiment import load_experiment
from reproduction.experiments.montezumarevenge import GOALS

# Frames with NOOP until the player can move.
INTROS = {"Freeway": 20, "MontezumaRevenge": 60, "MsPacman": 270}


# Games and starts


@pytest.mark.parametrize(
    ("game", "buttons"),
    [("Freeway", [1]), ("MontezumaRevenge", [5, 3]), ("MsPacman", [2, 4])],
)
def test_position_on_the_screen_is_where_actions_change_pixels(
    game: str, buttons: list[int]
) -> None:
    """Pixels that differ between the outcomes of actions are the player's.

    See Bellemare et al. (2012).
    """
    emulator, known = Emulator(game), get_game(game)
    emulator.replay([0] * INTROS[game])
    for button in buttons:
        emulator.step(button, 30)
        x, y = known.to_screen(emulator.ram()[list(known.position)])
        here = emulator.save()
        screens = np.stack([emulator.screen() for _ in emulator.try_actions(here, 4)])
        emulator.restore(here)
        rows, columns = np.nonzero((screens[1:] != screens[0]).any(axis=(0, 3)))
        assert abs(np.median(columns) - x) <= 4
        assert abs(np.median(rows) - y) <= 6


def test_regions_of_a_game_do_not_overlap() -> None:
    for known in GAMES.values():
        boxes = [np.array(box) for box in known.regions.values()]
        for a, b in combinations(boxes, 2):
            assert ((a[:, 0] > b[:, 1]) | (b[:, 0] > a[:, 1])).any()
    assert {
        get_game("Freeway").find_region([height]) == "" for height in range(256)
    } == {False}


@pytest.mark.parametrize("game", GAMES)
def test_starts_of_a_collection_are_different_places(game: str) -> None:
    emulator, places = Emulator(game), set()
    for actions in load_starts(game, 21):
        emulator.replay(actions)
        assert not emulator.over
        places.add(emulator.ram()[list(get_game(game).position)].tobytes())
    assert len(places) == 6


# Roll-outs


def roll_out_alone(
    emulator: Emulator, e: Any, features: Ram, frames: int, skip: int, published: bool
) -> list[int]:
    """Actions of one option by itself, in plain Python."""
    tie = 0.0 if published else 1e-9 * np.abs(e).max()
    state, phi, offset = (
        emulator.save(),
        features(emulator.ram()[None])[0].astype(float),
        0.0,
    )
    actions: list[int] = []
    while len(actions) < frames:
        steps = list(emulator.try_actions(state, skip, one_life=True))
        q = np.array(
            [
                (features(step.rams[-1][None])[0].astype(float) - phi) @ e
                for step in steps
            ]
        )
        best = next(
            a for a, x in enumerate(q - offset) if x >= (q - offset).max() - tie
        )
        action = best if (q - offset).max() > tie else 0
        offset = q[-1] - q[action] if published else 0.0
        emulator.restore(state)
        step = emulator.step(action, skip, one_life=True)
        state, phi = emulator.save(), features(step.rams[-1][None])[0].astype(float)
        actions += [action] * len(step.rams)
        if step.ended:
            break
    return actions[:frames]


@pytest.mark.parametrize("game", INTROS)
@pytest.mark.parametrize(
    ("code", "skip", "published"),
    [("bits", 1, False), ("bytes", 4, False), ("bits", 1, True)],
)
def test_rollouts_together_equal_each_alone(
    game: str, code: str, skip: int, published: bool
) -> None:
    emulator, features = Emulator(game), Ram(code)
    e = np.random.default_rng(1).normal(size=(3, features.n_features))
    e = round_to_grid(np.concatenate([e, -e]), features)
    start = [0] * INTROS[game]
    emulator.replay(start)
    log = roll_out(
        emulator, 6, look_ahead(e, features, published=published), 10, (14,), skip
    )
    for i in range(6):
        emulator.replay(start)
        actions = roll_out_alone(emulator, e[i], features, 10, skip, published)
        assert log.actions[i, : log.length[i]].tolist() == actions


@pytest.mark.parametrize("game", INTROS)
def test_game_graph_has_the_transitions_of_the_emulator(game: str) -> None:
    start, known = (0,) * INTROS[game], get_game(game)
    graph = explore_game(game, [start], 8, max_states=25)
    emulator, key = Emulator(game), [*known.position, *known.context]
    assert len(np.unique(graph.ram[:, key], axis=0)) == graph.mdp.n_states
    assert [graph.locate(ram) for ram in graph.ram] == list(range(graph.mdp.n_states))
    emulator.replay(start)
    states = {0: emulator.save()}
    for i in range(graph.mdp.n_states):
        if i not in states:
            continue
        for action, step in enumerate(
            emulator.try_actions(states[i], 8, one_life=True)
        ):
            there = graph.mdp.successors[i, action]
            assert there == i or np.array_equal(
                graph.ram[there][key], step.rams[-1][key]
            )
            if np.array_equal(graph.ram[there], step.rams[-1]):
                states.setdefault(there, emulator.save())
    assert len(states) > 5


# Measures and comparisons


def make_log(paths: Any, length: Any = None) -> Rollouts:
    watched = np.asarray(paths, dtype=np.uint8)
    n, frames, w = watched.shape
    length = np.full(n, frames) if length is None else np.asarray(length)
    actions = np.zeros((n, frames), np.int8)
    return Rollouts(
        np.zeros(w, np.uint8), actions, watched, np.zeros(n), length, length < frames
    )


def test_measures_of_a_path_are_those_by_hand() -> None:
    path = [[0], [8], [16], [40], [41], [42], [42], [60]]
    row = measure_rollouts(make_log([path]), get_game("Freeway")).iloc[0]
    assert row.dwell == 0.75  # 41 and 42 are one place: 40..43
    assert (row.settles, row.arrives, row.x, row.away, row.region) == (
        1,
        1,
        42,
        42,
        "lane 2",
    )
    assert (row.farthest, row.height) == (60, np.mean(path))


def test_measures_of_lost_lives_and_ties() -> None:
    table = measure_rollouts(
        make_log([[[30, 30]] * 10] * 3, length=[10, 7, 3]), get_game("MsPacman")
    )
    np.testing.assert_allclose(table.dwell, [1.0, 0.4, 0.0])
    assert table.died.tolist() == [0, 1, 1]
    assert table.x.isna().tolist() == [False, False, True]
    first = measure_rollouts(
        make_log([[[0]] * 4 + [[90], [20], [20], [90]]]), get_game("Freeway")
    )
    assert first.x.tolist() == [90]


def test_meetings_of_own_places_are_beyond_those_of_other_options(
    rng: np.random.Generator,
) -> None:
    def agreement(places: Any) -> float:
        own, others = count_meetings(places)
        return float((own - others)[~np.eye(len(own), dtype=bool)].mean())

    places = 60.0 * rng.integers(4, size=(40, 1, 2)) * np.ones((40, 5, 1))
    assert agreement(places) > 0.6  # each has its own place
    shuffled = np.stack([rng.permutation(places[:, s]) for s in range(5)], axis=1)
    assert abs(agreement(shuffled)) < 0.1  # same places, but not by option
    assert agreement(np.zeros((7, 5, 1))) == 0  # all at one place
    assert agreement(np.full((7, 5, 1), np.nan)) == 0  # nowhere


def make_rollouts(
    rng: np.random.Generator,
    *,
    shift: float = 0.0,
    own: float = 0.5,
    collections: int = 3,
) -> pd.DataFrame:
    """A made-up table of options with places of their own.

    Singular options keep to theirs with probability `own`.
    """
    tables = []
    for c in range(collections):
        for kind, bases, n in (
            ("singular", 1, 12),
            ("random", 5, 6),
            ("walk", 1, 8),
            ("published", 1, 4),
            ("constant", 1, 3),
        ):
            for basis in range(bases):
                goals, level = (
                    200 * rng.random((n, 2)),
                    0.5 + 0.1 * rng.normal() * (kind == "random"),
                )
                for start in range(6):
                    for sign in (1, -1) if kind in ("singular", "random") else (1,):
                        keeps = rng.random((n, 1)) < (
                            own if kind == "singular" else 0.0
                        )
                        at = np.where(
                            keeps,
                            goals if sign > 0 else 200 - goals,
                            200 * rng.random((n, 2)),
                        )
                        dwell = (
                            level
                            + shift * (kind == "singular")
                            + 0.2 * rng.normal(size=n)
                        )
                        keys = {
                            "collection": c,
                            "start": start,
                            "kind": kind,
                            "basis": basis,
                            "sign": sign,
                        }
                        columns = {
                            "direction": np.arange(n),
                            "dwell": dwell.clip(0, 1),
                            "x": at[:, 0],
                            "y": at[:, 1],
                        }
                        tables.append(pd.DataFrame(columns).assign(**keys))
    table = pd.concat(tables, ignore_index=True).assign(
        variant="paper", frames=8192, region=""
    )
    settles = (table.dwell >= 0.5).astype(float)
    return table.assign(
        settles=settles, arrives=settles, farthest=0.0, score=0.0, height=0.0
    )


def test_effects_that_exist_are_found_and_others_are_not(
    rng: np.random.Generator,
) -> None:
    none = compare_with_random(make_rollouts(rng, own=0.0), "dwell", draws=500)
    assert not none.better
    assert not none.worse
    assert compare_with_random(make_rollouts(rng, shift=0.3), "dwell", draws=500).better
    assert compare_with_random(make_rollouts(rng, shift=-0.3), "dwell", draws=500).worse
    table = make_rollouts(rng)
    effect = compare_with_random(table, "agreement", draws=500)
    assert effect.better
    assert effect == compare_with_random(
        table.sample(frac=1, random_state=0), "agreement", draws=500
    )
    level = mean_agreement(table[table.kind == "singular"], draws=300)
    assert 0 < level.low <= level.mean <= level.high


def test_reliable_options_go_to_one_place_from_most_starts(
    rng: np.random.Generator,
) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0, collections=1)
    singular = table[table.kind == "singular"]
    assert len(find_reliable(singular)) == 24
    assert find_reliable(
        singular.assign(arrives=0.0)
    ).empty  # they were there from the beginning


# Collections


def test_bases_of_a_collection_are_orthonormal_where_they_should_be() -> None:
    collection = load_collection("Freeway", make_variants("Freeway", "quick")[0], 1)
    for kind in ("singular", "random"):
        basis = collection.make_basis(kind)
        np.testing.assert_allclose(basis @ basis.T, np.eye(collection.rank), atol=1e-9)
    last = collection.rank - 1
    assert collection.choose_numbers(Kind("singular", 2)) == [0, last]
    assert collection.choose_numbers(Kind("singular", 2, end="small")) == [
        last - 1,
        last,
    ]


def test_rows_of_v_are_those_of_the_published_program(rng: np.random.Generator) -> None:
    T = rng.integers(-1, 2, size=(40, 8)).astype(np.float64)
    _, s, V = np.linalg.svd(T)
    eigenpurposes = V.transpose()  # numpy's V is the transpose already
    spectrum = Spectrum(0.5 * s[::-1] ** 2, V[::-1].T, "incidence", n_zero=0)
    collection = Collection("Freeway", Variant("paper", (), 1), 0, [], spectrum)
    assert np.array_equal(collection.make_basis("rows"), eigenpurposes)


@pytest.mark.parametrize("game", GAMES)
def test_settings_follow_appendix_e(game: str) -> None:
    for size in ("paper", "full", "default"):
        for variant in make_variants(game, size):
            assert (variant.transitions, variant.max_episode_frames) == (25_000, 10_000)
    # The default is the last variant of the full size, so the command shows what the
    # documents show.
    last = [variant for variant in make_variants(game) if not variant.long][-1]
    assert make_variants(game, "default")[0].name == last.name


# Claims


def judge(
    game: str, table: pd.DataFrame, long: pd.DataFrame | None = None
) -> dict[str, str]:
    if long is None:
        first = table[table.start == 0]
        long = pd.concat([first, first.assign(variant="bytes")])
    experiment = load_experiment(game.lower())
    claims = experiment.judge({"rollouts": table, "long": long})
    return {claim.id: claim.verdict for claim in claims}


def test_claims_about_intent_follow_from_the_table(rng: np.random.Generator) -> None:
    names = ("pacman-intent", "pacman-ours-0")
    for own, shift, collections, expected in (
        (0.8, 0.3, 3, "holds"),
        (0.0, -0.3, 3, "does not hold"),
        (0.8, 0.3, 1, "not decided"),  # one collection refutes and compares nothing
    ):
        verdicts = judge(
            "MsPacman",
            make_rollouts(rng, own=own, shift=shift, collections=collections),
        )
        assert {verdicts[name] for name in names} == {expected}


def test_claims_about_freeway_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0).drop(columns="y")
    road = get_game("Freeway")
    table["region"] = [road.find_region([x]) for x in table.x]
    table["height"] = table.x.where(table.kind == "singular", 10.0)
    verdicts = judge("Freeway", table.assign(frames=2048))
    # Points are not judged on a part of an episode.
    names = (
        "freeway-lane",
        "freeway-heights",
        "freeway-walk",
        "freeway-445",
        "freeway-close-to-dqn",
    )
    assert [verdicts[name] for name in names] == [
        "holds",
        "holds",
        "holds",
        "not decided",
        "not decided",
    ]
    walk = table.kind == "walk"
    still = table.assign(
        x=10.0, height=10.0, region="bottom", score=walk * 1.0, farthest=walk * 170.0
    )
    verdicts = judge("Freeway", still)
    assert {verdicts[name] for name in names} == {"does not hold"}
    scores = still.score.where(
        ~((table.kind == "singular") & (table.direction == 3)), 28.0
    )
    verdicts = judge("Freeway", still.assign(score=scores))
    assert (verdicts["freeway-445"], verdicts["freeway-close-to-dqn"]) == (
        "holds",
        "holds",
    )


@pytest.mark.parametrize(
    ("farthest", "score", "collections", "verdict"),
    [
        (170.0, 20.0, 3, "holds"),
        (170.0, 0.0, 3, "partly"),
        (30.0, 0.0, 3, "does not hold"),
        (30.0, 0.0, 1, "not decided"),
    ],
)
def test_claim_about_bytes_asks_who_climbs_and_scores(
    rng: np.random.Generator,
    farthest: float,
    score: float,
    collections: int,
    verdict: str,
) -> None:
    table = make_rollouts(rng, collections=collections).drop(columns="y")
    chosen = (table.kind == "singular") & (table.direction == 5)
    climbs = table.assign(
        variant="bytes", farthest=chosen * farthest, score=chosen * score
    )
    assert (
        judge("Freeway", table, pd.concat([table, climbs]))["freeway-bytes"] == verdict
    )


def test_claims_about_places_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0)
    singular = table.kind == "singular"
    goals = np.array(GOALS)[table.direction % len(GOALS)]
    verdicts = judge(
        "MontezumaRevenge", table.assign(region=np.where(singular, goals, ""))
    )
    assert (verdicts["montezuma-places"], verdicts["montezuma-kulkarni"]) == (
        "holds",
        "holds",
    )
    rope = np.where(singular & (goals == "rope"), "rope", "")
    verdicts = judge("MontezumaRevenge", table.assign(region=rope))
    assert (verdicts["montezuma-places"], verdicts["montezuma-kulkarni"]) == (
        "partly",
        "does not hold",
    )
    corners = np.where(
        singular,
        np.where(table.direction % 2, "lower left corner", "junction 26,26"),
        "",
    )
    assert judge("MsPacman", table.assign(region=corners))["pacman-places"] == "holds"
    assert judge("MsPacman", table)["pacman-places"] == "does not hold"


# Stored results and the command


@pytest.mark.parametrize("game", GAMES)
def test_stored_results_are_small_and_complete(game: str) -> None:
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) < 2e6
    data = load_results(game=game)
    wanted = [variant.name for variant in make_variants(game) if not variant.long]
    assert list(data["rollouts"].variant.unique()) == wanted
    assert data["rollouts"].collection.nunique() == 3
    assert set(data["traces"].label) == set(data["highlights"].label)


def test_command_writes_tables_clips_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    atari.main(["freeway", "--quick", "--out", str(tmp_path)])
    folder = tmp_path / "freeway"
    assert "freeway-lane" in capsys.readouterr().out
    assert (folder / "walk-0.gif").read_bytes()[:3] == b"GIF"
    page = (folder / "index.html").read_text()
    for name in ("rollouts", "long", "highlights", "traces"):
        assert f'href="data/freeway-{name}.csv"' in page
        assert (folder / "data" / f"freeway-{name}.csv").stat().st_size > 100
