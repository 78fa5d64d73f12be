"""The study of Atari games: roll-outs, measures, claims and stored results."""

from __future__ import annotations

import doctest
from dataclasses import astuple
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
from reproduction.atari import protocol, repeat
from reproduction.atari.claims import describe_ways, list_variant_claims
from reproduction.atari.collection import Collection, load_collection
from reproduction.atari.game_graph import explore_game
from reproduction.atari.games import GAMES, get_game, load_starts
from reproduction.atari.joystick import check_memory, look_at_memory
from reproduction.atari.measures import (
    compare_with_random,
    count_meetings,
    estimate_deviations,
    find_reliable,
    mean_agreement,
    measure_prefixes,
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
    """Pixels that depend on the action are the player's (Bellemare et al., 2012)."""
    emulator = Emulator(game)
    known = get_game(game)
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
    emulator = Emulator(game)
    places = set()
    for actions in load_starts(game, 21):
        emulator.replay(actions)
        assert not emulator.over
        places.add(emulator.ram()[list(get_game(game).position)].tobytes())
    assert len(places) == 6


# Roll-outs


def roll_out_alone(
    emulator: Emulator, e: Any, features: Ram, frames: int, skip: int, rule: str
) -> list[int]:
    """Actions of one option by itself, in plain Python."""

    def encode(ram: Any) -> Any:
        return features(ram[None])[0].astype(float)

    tie = 0.0 if rule == "published" else 1e-9 * np.abs(e).max()
    state = emulator.save()
    phi = encode(emulator.ram())
    offset = 0.0
    actions: list[int] = []
    while len(actions) < frames:
        steps = list(emulator.try_actions(state, skip, one_life=True))
        q = np.array([(encode(step.rams[-1]) - phi) @ e for step in steps])

        # The first of the best actions, or none.
        scores = q - offset
        action = 0
        if scores.max() > tie or rule == "argmax":
            action = int(np.flatnonzero(scores >= scores.max() - tie)[0])
        if rule == "published":
            offset = q[-1] - q[action]

        emulator.restore(state)
        step = emulator.step(action, skip, one_life=True)
        state = emulator.save()
        phi = encode(step.rams[-1])
        actions += [action] * len(step.rams)
        if step.ended:
            break
    return actions[:frames]


@pytest.mark.parametrize("game", INTROS)
@pytest.mark.parametrize(
    ("code", "skip", "rule"),
    [
        ("bits", 1, "wait"),
        ("bytes", 4, "wait"),
        ("bits", 1, "argmax"),
        ("bits", 1, "published"),
    ],
)
def test_rollouts_together_equal_each_alone(
    game: str, code: str, skip: int, rule: str
) -> None:
    emulator = Emulator(game)
    features = Ram(code)
    directions = np.random.default_rng(1).normal(size=(3, features.n_features))
    e = round_to_grid(np.concatenate([directions, -directions]), features)
    start = [0] * INTROS[game]
    emulator.replay(start)
    options = look_ahead(e, features, rule=rule)
    log = roll_out(emulator, 6, options, 10, (14,), skip)
    for i in range(6):
        emulator.replay(start)
        actions = roll_out_alone(emulator, e[i], features, 10, skip, rule)
        assert log.actions[i, : log.length[i]].tolist() == actions


@pytest.mark.parametrize("game", ["MontezumaRevenge", "MsPacman"])
def test_memory_after_each_action_is_that_of_emulating_all(game: str) -> None:
    """The slow twin emulates every action in states of a random walk."""
    emulator = Emulator(game)
    emulator.replay([0] * INTROS[game])
    rng = np.random.default_rng(0)
    n_tried = 0
    for _ in range(60):
        emulator.act(int(rng.integers(emulator.n_actions)))
        here = emulator.save()
        ram = emulator.ram()
        steps = [step.rams[-1] for step in emulator.try_actions(here)]
        tried = []

        def try_action(action: int) -> Any:
            tried.append(action)  # noqa: B023
            return steps[action]  # noqa: B023

        rams = look_at_memory(game, emulator.actions, ram, try_action)
        np.testing.assert_array_equal(rams, steps)
        n_tried += len(tried)
        emulator.restore(here)
    assert n_tried < 60 * emulator.n_actions


def test_memory_that_a_rule_gets_wrong_is_refused() -> None:
    ram = np.zeros(128, dtype=np.uint8)
    check_memory("MsPacman", ram, ram)
    with pytest.raises(RuntimeError, match="joystick"):
        check_memory("MsPacman", ram, ram + 1)


@pytest.mark.parametrize("game", INTROS)
def test_game_graph_has_the_transitions_of_the_emulator(game: str) -> None:
    known = get_game(game)
    key = [*known.position, *known.context]
    start = (0,) * INTROS[game]
    graph = explore_game(game, [start], 8, max_states=25)
    assert len(np.unique(graph.ram[:, key], axis=0)) == graph.mdp.n_states
    assert [graph.locate(ram) for ram in graph.ram] == list(range(graph.mdp.n_states))

    # Emulator states that represent a graph state, as far as they are known.
    emulator = Emulator(game)
    emulator.replay(start)
    states = {0: emulator.save()}
    for i in range(graph.mdp.n_states):
        if i not in states:
            continue
        steps = emulator.try_actions(states[i], 8, one_life=True)
        for action, step in enumerate(steps):
            there = graph.mdp.successors[i, action]
            ram = step.rams[-1]
            if there != i:
                np.testing.assert_array_equal(graph.ram[there][key], ram[key])
            if np.array_equal(graph.ram[there], ram):
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
    assert row.settles == 1
    assert row.arrives == 1
    assert row.x == 42
    assert row.away == 42
    assert row.region == "lane 2"
    assert row.farthest == 60
    assert row.height == pytest.approx(np.mean(path))


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


def test_measures_of_a_prefix_are_those_of_a_shorter_roll_out() -> None:
    path = np.arange(40)[:, None] // 8 * 8
    whole = make_log([path, path], length=[40, 15])
    for frames, table in measure_prefixes(whole, get_game("Freeway"), n_parts=4):
        length = np.minimum([40, 15], frames)
        shorter = make_log([path[:frames]] * 2, length=length)
        shorter.died[:] = [False, frames >= 15]
        expected = measure_rollouts(shorter, get_game("Freeway"))
        pd.testing.assert_frame_equal(table, expected)
    assert frames == 40


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
    """A made-up table of roll-outs.

    Options have places of their own, which singular ones keep to with probability
    `own`; their dwell is longer by `shift`.
    """
    # Bases and options of each kind.
    sizes = {
        "singular": (1, 12),
        "random": (5, 6),
        "walk": (1, 8),
        "published": (1, 4),
        "constant": (1, 3),
    }
    tables = []
    for collection in range(collections):
        for kind, (n_bases, n) in sizes.items():
            chance = own if kind == "singular" else 0.0
            gain = shift if kind == "singular" else 0.0
            spread = 0.1 if kind == "random" else 0.0
            for basis in range(n_bases):
                goals = 200 * rng.random((n, 2))
                level = 0.5 + gain + spread * rng.normal()
                keys = {"collection": collection, "kind": kind, "basis": basis}
                for start in range(6):
                    part = make_group(rng, goals, level, chance)
                    tables.append(part.assign(**keys, start=start, sign=1))
                    if kind in ("singular", "random"):
                        part = make_group(rng, 200 - goals, level, chance)
                        tables.append(part.assign(**keys, start=start, sign=-1))
    table = pd.concat(tables, ignore_index=True)
    settles = (table.dwell >= 0.5).astype(float)
    return table.assign(
        variant="paper",
        frames=8192,
        region="",
        settles=settles,
        arrives=settles,
        farthest=0.0,
        score=0.0,
        height=0.0,
    )


def make_group(
    rng: np.random.Generator, goals: Any, level: float, chance: float
) -> pd.DataFrame:
    """Options that end at their goals with a probability, elsewhere otherwise."""
    n = len(goals)
    keeps = rng.random((n, 1)) < chance
    places = np.where(keeps, goals, 200 * rng.random((n, 2)))
    dwell = level + 0.2 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "direction": np.arange(n),
            "dwell": dwell.clip(0, 1),
            "x": places[:, 0],
            "y": places[:, 1],
        }
    )


def test_effects_that_exist_are_found_and_others_are_not(
    rng: np.random.Generator,
) -> None:
    none = compare_with_random(make_rollouts(rng, own=0.0), "dwell", draws=500)
    assert not none.above()
    assert not none.below()
    more = compare_with_random(make_rollouts(rng, shift=0.3), "dwell", draws=500)
    assert more.above()
    less = compare_with_random(make_rollouts(rng, shift=-0.3), "dwell", draws=500)
    assert less.below()
    table = make_rollouts(rng)
    effect = compare_with_random(table, "agreement", draws=500)
    assert effect.above()
    shuffled = table.sample(frac=1, random_state=0)
    again = compare_with_random(shuffled, "agreement", draws=500)
    assert astuple(effect) == pytest.approx(astuple(again))
    level = mean_agreement(table[table.kind == "singular"], draws=300)
    assert 0 < level.low <= level.mean <= level.high


def test_one_random_basis_deviates_as_its_directions_do(
    rng: np.random.Generator,
) -> None:
    table = make_rollouts(rng, own=0.0)
    assert estimate_deviations(table[table.kind == "random"], "dwell") == [0, 0, 0]

    one = table[(table.start == 0) & (table.basis == 0)]
    random = one[one.kind == "random"]
    deviations = estimate_deviations(random, "dwell")
    first = random[random.collection == 0].groupby("direction").dwell.mean()
    assert deviations[0] == pytest.approx(first.std() / np.sqrt(len(first)))

    # Collections differ by chance, and directions on top.
    of_mean = np.linalg.norm(deviations) / 3
    effect = compare_with_random(one, "dwell")
    assert effect.high - effect.low > 0.9 * 2 * 1.96 * of_mean


def test_ways_beside_the_protocol_are_a_table_and_the_last_a_claim(
    rng: np.random.Generator,
) -> None:
    names = ("paper", "literal argmax", "bytes", "best")
    tables = [
        make_rollouts(rng, own=0.8, shift=0.3).assign(variant=name) for name in names
    ]
    data = {"rollouts": pd.concat(tables)}
    claims = list(list_variant_claims(data, "Ms. Pac-Man", "pacman"))
    assert [claim.id for claim in claims] == ["pacman-ours-paper", "pacman-ours-best"]
    assert [claim.verdict for claim in claims] == ["holds", "holds"]
    # The best settings have the tests of the paper's protocol: agreement alone is less.
    tables = [make_rollouts(rng, own=0.8).assign(variant=name) for name in names]
    some = {"rollouts": pd.concat(tables)}
    claims = list(list_variant_claims(some, "Ms. Pac-Man", "pacman"))
    assert len(claims[-1].tests) == len(claims[0].tests) == 2
    assert claims[-1].verdict != "holds"
    ((_, ways),) = describe_ways(data)
    assert ways.way.tolist() == ["bytes", "best"]


def test_reliable_options_go_to_one_place_from_most_starts(
    rng: np.random.Generator,
) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0, collections=1)
    singular = table[table.kind == "singular"]
    assert len(find_reliable(singular)) == 24
    were_there_from_the_beginning = singular.assign(arrives=0.0)
    assert find_reliable(were_there_from_the_beginning).empty


# Collections


def test_bases_of_a_collection_are_orthonormal_where_they_should_be() -> None:
    collection = load_collection("Freeway", make_variants("Freeway", "quick")[0], 1)
    for kind in ("singular", "random"):
        basis = collection.make_basis(kind)
        np.testing.assert_allclose(basis @ basis.T, np.eye(collection.rank), atol=1e-9)
    last = collection.rank - 1
    assert collection.choose_numbers(Kind("singular", 2)) == [0, last]
    smallest = collection.choose_numbers(Kind("singular", 2, end="small"))
    assert smallest == [last - 1, last]


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
            assert variant.transitions == 25_000
            assert variant.max_episode_frames == 10_000
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
    names = ("pacman-intent", "pacman-ours-paper")
    for own, shift, collections, expected in (
        (0.8, 0.3, 3, "holds"),
        (0.0, -0.3, 3, "does not hold"),
        (0.8, 0.3, 1, "not decided"),  # one collection refutes and compares nothing
    ):
        table = make_rollouts(rng, own=own, shift=shift, collections=collections)
        verdicts = judge("MsPacman", table)
        assert {verdicts[name] for name in names} == {expected}


def test_claims_about_freeway_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0).drop(columns="y")
    road = get_game("Freeway")
    table["region"] = [road.find_region([x]) for x in table.x]
    table["height"] = table.x.where(table.kind == "singular", 10.0)
    about_places = ("freeway-lane", "freeway-heights", "freeway-walk")
    about_points = ("freeway-445", "freeway-close-to-dqn")

    # Points are not judged on a part of an episode.
    verdicts = judge("Freeway", table.assign(frames=2048))
    assert {verdicts[name] for name in about_places} == {"holds"}
    assert {verdicts[name] for name in about_points} == {"not decided"}

    # Only random walks get anywhere.
    walk = table.kind == "walk"
    still = table.assign(
        x=10.0, height=10.0, region="bottom", score=walk * 1.0, farthest=walk * 170.0
    )
    verdicts = judge("Freeway", still)
    names = about_places + about_points
    assert {verdicts[name] for name in names} == {"does not hold"}

    # One singular option scores.
    scores = (table.kind == "singular") & (table.direction == 3)
    verdicts = judge("Freeway", still.assign(score=still.score.where(~scores, 28.0)))
    assert {verdicts[name] for name in about_points} == {"holds"}


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
    verdicts = judge("Freeway", table, pd.concat([table, climbs]))
    assert verdicts["freeway-bytes"] == verdict


def test_claims_about_places_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0)
    singular = table.kind == "singular"
    goals = np.array(GOALS)[table.direction % len(GOALS)]
    all_goals = table.assign(region=np.where(singular, goals, ""))
    verdicts = judge("MontezumaRevenge", all_goals)
    assert verdicts["montezuma-places"] == "holds"
    assert verdicts["montezuma-kulkarni"] == "holds"

    rope = np.where(singular & (goals == "rope"), "rope", "")
    verdicts = judge("MontezumaRevenge", table.assign(region=rope))
    assert verdicts["montezuma-places"] == "partly"
    assert verdicts["montezuma-kulkarni"] == "does not hold"

    crossings = np.where(table.direction % 2, "lower left corner", "junction 26,26")
    both = table.assign(region=np.where(singular, crossings, ""))
    assert judge("MsPacman", both)["pacman-places"] == "holds"
    assert judge("MsPacman", table)["pacman-places"] == "does not hold"


def test_other_readings_are_judged_beside_the_main_one(
    rng: np.random.Generator,
) -> None:
    main = make_rollouts(rng, own=0.0)
    argmax = make_rollouts(rng, own=0.9).assign(variant="literal argmax")
    argmax = argmax[argmax.kind.isin(["singular", "random"])]
    rows = main[main.kind == "singular"].assign(
        variant="published program", kind="published"
    )
    data = {"rollouts": pd.concat([main, argmax, rows[rows.start < 2]])}
    judged = load_experiment("mspacman").judge(data)
    (intent,) = [claim for claim in judged if claim.id == "pacman-intent"]
    assert intent.verdicts["main"] == "does not hold"
    assert intent.verdicts["literal argmax"] == "holds"
    assert intent.verdicts["published program"] != "holds"
    assert intent.edge
    # A reading is no other way to make options.
    assert "pacman-ours-best" not in {claim.id for claim in judged}


# Stored results and the command


@pytest.mark.parametrize("game", GAMES)
def test_stored_results_are_small_and_complete(game: str) -> None:
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) < 4e6
    data = load_results(game=game)
    wanted = [variant.name for variant in make_variants(game) if not variant.long]
    stored = list(data["rollouts"].variant.unique())
    assert stored == wanted
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


def test_examples_of_the_protocol_hold() -> None:
    for module in (protocol, repeat):
        assert doctest.testmod(module).failed == 0


def test_repeating_a_part_that_is_not_stored_names_those_that_are() -> None:
    with pytest.raises(ValueError, match="starts 0 to 5"):
        repeat.repeat_part("Freeway", "paper", collection=9, start=0, n_options=1)


def test_repeated_rows_are_compared_to_the_digits_that_are_stored() -> None:
    row = {"kind": "walk", "basis": 0, "direction": 1, "sign": 1, "region": "rope"}
    stored = pd.DataFrame([row | {"dwell": 0.333333, "x": np.nan}])
    for dwell, n_differences in ((1 / 3, 0), (0.3334, 1)):
        repeated = pd.DataFrame([row | {"dwell": dwell, "x": np.nan}])
        assert len(repeat.compare_rows(stored, repeated)) == n_differences
    moved = stored.assign(region="key")
    assert list(repeat.compare_rows(stored, moved).measure) == ["region"]
