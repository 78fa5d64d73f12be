"""The study of Atari games: starts, roll-outs, game graphs, measures, statistics, claims and stored results."""

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
from reproduction.atari.claims import GOALS, judge_game
from reproduction.atari.game_graph import explore_game
from reproduction.atari.games import GAMES, get_game
from reproduction.atari.measures import FAR, count_meetings, count_places, find_reliable, measure
from reproduction.atari.rollouts import Rollouts, roll_out_directions, round_to_grid
from reproduction.atari.settings import SIZES, make_study
from reproduction.atari.starts import Start, find_starts, skip_intro
from reproduction.atari.statistics import compare_kinds, mean_agreement
from reproduction.atari.study import Collection, load_collection, make_job, summarize

# Frames with NOOP until the player can move.
INTROS = {"Freeway": 20, "MontezumaRevenge": 60, "MsPacman": 270}


# Games and starts


@pytest.mark.parametrize(
    ("game", "buttons"), [("Freeway", [1]), ("MontezumaRevenge", [5, 3]), ("MsPacman", [2, 4])]
)
def test_position_on_the_screen_is_where_actions_change_pixels(game: str, buttons: list[int]) -> None:
    """Pixels that differ between the outcomes of the actions are the player's (Bellemare et al., 2012)."""
    emulator, known = Emulator(game), get_game(game)
    skip_intro(emulator)
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
    assert {get_game("Freeway").find_region([height]) == "" for height in range(256)} == {False}


def test_found_starts_are_far_apart_and_depend_on_the_seed() -> None:
    starts = find_starts("Freeway", 3, bursts=25)
    emulator = Emulator("Freeway")
    for start in starts:
        assert Start.parse_actions(start.to_text()) == list(start.actions)
        assert emulator.replay(start.actions) == 0.0
        assert (int(emulator.ram()[14]),) == start.position
    heights = [start.position[0] for start in starts]
    assert min(abs(a - b) for a, b in combinations(heights, 2)) >= 8
    assert find_starts("Freeway", 3, bursts=25, rng=1) != starts
    with pytest.raises(ValueError, match="bursts"):
        find_starts("Freeway", 20, bursts=2)


# Roll-outs


def roll_out_alone(
    emulator: Emulator, state: Any, e: Any, features: Ram, frames: int, skip: int, published: bool
) -> Any:
    """One option by itself, in plain Python: actions, and whether no action was positive."""
    emulator.restore(state)
    tie = 0.0 if published else 1e-9 * np.abs(e).max()
    phi, offset, actions, stopped = features(emulator.ram()[None])[0].astype(float), 0.0, [], []
    while len(actions) < frames:
        steps = list(emulator.try_actions(state, skip, one_life=True))
        q = np.array([(features(step.rams[-1][None])[0].astype(float) - phi) @ e for step in steps])
        best = next(a for a, x in enumerate(q - offset) if x >= (q - offset).max() - tie)
        positive = (q - offset).max() > tie
        action = best if positive else 0
        offset = q[-1] - q[action] if published else 0.0
        emulator.restore(state)
        step = emulator.step(action, skip, one_life=True)
        state, phi = emulator.save(), features(step.rams[-1][None])[0].astype(float)
        actions += [action] * len(step.rams)
        stopped += [not positive] * skip
        if step.ended:
            break
    return actions[:frames], stopped[:frames]


@pytest.mark.parametrize("game", INTROS)
@pytest.mark.parametrize(
    ("code", "skip", "published"), [("bits", 1, False), ("bytes", 4, False), ("bits", 1, True)]
)
def test_rollouts_together_equal_each_alone(game: str, code: str, skip: int, published: bool) -> None:
    emulator, features = Emulator(game), Ram(code)
    emulator.replay([0] * INTROS[game])
    state = emulator.save()
    emulator.act(1)
    before = emulator.key(emulator.save())
    e = np.random.default_rng(1).normal(size=(3, features.n_features))
    e = round_to_grid(np.concatenate([e, -e]), features)
    log = roll_out_directions(emulator, state, e, features, 10, frame_skip=skip, published=published)
    assert emulator.key(emulator.save()) == before
    for i in range(6):
        actions, stopped = roll_out_alone(emulator, state, e[i], features, 10, skip, published)
        assert log.actions[i, : log.length[i]].tolist() == actions
        assert log.stopped[i, : len(stopped)].tolist() == stopped
    few = roll_out_directions(emulator, state, e[:2], features, 10, frame_skip=skip, published=published)
    assert np.array_equal(log.actions[:2], few.actions)


@pytest.mark.parametrize("game", INTROS)
def test_game_graph_has_the_transitions_of_the_emulator(game: str) -> None:
    start = Start.reach(game, (0,) * INTROS[game])
    graph = explore_game(game, [start], max_states=25)
    emulator, key = Emulator(game), list(graph.key_bytes)
    assert len(np.unique(graph.ram[:, key], axis=0)) == graph.mdp.n_states
    emulator.replay(start.actions)
    states = {0: emulator.save()}
    for i in range(graph.mdp.n_states):
        for action, step in enumerate(
            emulator.try_actions(states[i], 8, one_life=True) if i in states else ()
        ):
            there = graph.mdp.successors[i, action]
            assert graph.loses_life[i, action] == step.ended
            if not step.ended and not graph.leaves_graph[i, action]:
                assert np.array_equal(graph.ram[there][key], step.rams[-1][key])
                if np.array_equal(graph.ram[there], step.rams[-1]):
                    states.setdefault(there, emulator.save())
    assert len(states) > 5


# Measures and statistics


def make_log(paths: Any, length: Any = None, **fields: Any) -> Rollouts:
    watched = np.asarray(paths, dtype=np.uint8)
    n, frames = watched.shape[:2]
    length = np.full(n, frames) if length is None else np.asarray(length)
    zeros = {
        "actions": np.zeros((n, frames), np.int8),
        "stopped": np.zeros((n, frames), bool),
        "score": np.zeros(n),
    }
    given = {name: np.asarray(value) for name, value in fields.items()}
    return Rollouts(watched=watched, length=length, died=length < frames, **{**zeros, **given})


def test_measures_of_a_path_are_those_by_hand() -> None:
    path = [[0], [8], [16], [40], [41], [42], [42], [60]]
    log = make_log([path], stopped=[[0, 0, 1, 0, 0, 0, 1, 1]], actions=[[1, 1, 1, 1, 0, 0, 2, 1]])
    row = measure(log, (0,), get_game("Freeway")).iloc[0]
    assert row.dwell == 0.75  # 41 and 42 are one place: 40..43
    assert (row.settles, row.arrives, row.x, row.away, row.region) == (1, 1, 42, 42, "lane 2")
    assert (row.places, row.farthest, row.height) == (5, 60, np.mean(path))
    assert (row.first_stop, row.stopped, row.steady) == (2, 3 / 8, 5 / 8)


def test_measures_of_lost_lives_and_ties() -> None:
    table = measure(make_log([[[30, 30]] * 10] * 3, length=[10, 7, 3]), (0, 0), get_game("MsPacman"))
    np.testing.assert_allclose(table.dwell, [1.0, 0.4, 0.0])
    assert table.died.tolist() == [0, 1, 1]
    assert table.x.isna().tolist() == [False, False, True]
    first = measure(make_log([[[0]] * 4 + [[90], [20], [20], [90]]]), (0,), get_game("Freeway"))
    assert first.x.tolist() == [90]


def test_meetings_of_own_places_are_beyond_those_of_other_options(rng: np.random.Generator) -> None:
    def agreement(places: Any) -> float:
        own, others = count_meetings(places)
        return float((own - others)[~np.eye(len(own), dtype=bool)].mean())

    places = 60.0 * rng.integers(4, size=(40, 1, 2)) * np.ones((40, 5, 1))
    assert agreement(places) > 0.6  # each has its own place
    shuffled = np.stack([rng.permutation(places[:, s]) for s in range(5)], axis=1)
    assert abs(agreement(shuffled)) < 0.1  # same places, but not by option
    assert agreement(np.zeros((7, 5, 1))) == 0  # all at one place
    assert agreement(np.full((7, 5, 1), np.nan)) == 0  # nowhere


def test_counted_places_are_the_mean_over_all_choices(rng: np.random.Generator) -> None:
    points, arrives = rng.integers(0, 5, size=(7, 1)) * 20.0, rng.random(7) < 0.7
    for k in (1, 3, 7):
        counts = [len(np.unique(points[list(c)][arrives[list(c)]] // FAR)) for c in combinations(range(7), k)]
        assert count_places(points, arrives, k) == pytest.approx(np.mean(counts))


def make_rollouts(
    rng: np.random.Generator, *, shift: float = 0.0, own: float = 0.5, collections: int = 3
) -> pd.DataFrame:
    """A made-up table: options with places of their own, which singular ones keep to with probability `own`."""
    tables = []
    for c in range(collections):
        for kind, bases, n in (("singular", 1, 12), ("random", 5, 6), ("walk", 1, 8), ("published", 1, 4)):
            for basis in range(bases):
                goals, level = (
                    200 * rng.random((n, 2)),
                    0.5 + 0.1 * rng.standard_normal() * (kind == "random"),
                )
                for start in range(6):
                    for sign in (1, -1) if kind in ("singular", "random") else (1,):
                        keeps = rng.random((n, 1)) < (own if kind == "singular" else 0.0)
                        at = np.where(keeps, goals if sign > 0 else 200 - goals, 200 * rng.random((n, 2)))
                        dwell = level + shift * (kind == "singular") + 0.2 * rng.standard_normal(n)
                        keys = {"collection": c, "start": start, "kind": kind, "basis": basis, "sign": sign}
                        columns = {
                            "direction": np.arange(n),
                            "dwell": dwell.clip(0, 1),
                            "x": at[:, 0],
                            "y": at[:, 1],
                        }
                        tables.append(pd.DataFrame(columns).assign(**keys))
    table = pd.concat(tables, ignore_index=True).assign(variant="paper", frames=8192, region="", away=60.0)
    settles = (table.dwell >= 0.5).astype(float)
    zeros = dict.fromkeys(
        ["places", "farthest", "died", "score", "height", "first_stop", "stopped", "steady"], 0.0
    )
    return table.assign(settles=settles, arrives=settles, **zeros)


def test_effects_that_exist_are_found_and_others_are_not(rng: np.random.Generator) -> None:
    none = compare_kinds(make_rollouts(rng, own=0.0), "dwell", draws=500)
    assert not none.better
    assert not none.worse
    assert compare_kinds(make_rollouts(rng, shift=0.3), "dwell", draws=500).better
    assert compare_kinds(make_rollouts(rng, shift=-0.3), "dwell", draws=500).worse
    table = make_rollouts(rng)
    found = compare_kinds(table, "agreement", draws=500)
    assert found.better
    assert found == compare_kinds(table, "agreement", draws=500)
    level = mean_agreement(table[table.kind == "singular"], draws=300)
    assert 0 < level.low <= level.mean <= level.high


def test_reliable_options_go_to_one_place_from_most_starts(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0, collections=1)
    singular = table[table.kind == "singular"]
    assert len(find_reliable(singular)) == 24
    assert find_reliable(singular.assign(arrives=0.0)).empty  # they were there from the beginning


# Collections


def test_bases_of_a_collection_are_orthonormal_where_they_should_be() -> None:
    study = make_study("Freeway", "quick")
    job = make_job(study, study.variants[0], 0, (Start.reach("Freeway", (0,) * 60),))
    collection = load_collection(**job)
    singular = collection.make_basis("singular")
    for kind in ("singular", "random", "rotated"):
        basis = collection.make_basis(kind, 1)
        np.testing.assert_allclose(basis @ basis.T, np.eye(collection.rank), atol=1e-9)
        inside = np.linalg.norm(basis @ singular.T, axis=1)
        assert (inside.min() > 1 - 1e-9) == (kind != "random")
    last = collection.rank - 1
    assert collection.choose_numbers("singular", 2) == [0, last]
    assert collection.choose_numbers("singular", 2, "small") == [last - 1, last]


def test_rows_of_v_are_those_of_the_published_program(rng: np.random.Generator) -> None:
    T = rng.integers(-1, 2, size=(40, 8)).astype(np.float64)
    _, s, V = np.linalg.svd(T)
    eigenpurposes = V.transpose()  # numpy's V is the transpose already
    spectrum = Spectrum(0.5 * s[::-1] ** 2, V[::-1].T, "incidence", n_zero=0)
    assert np.array_equal(Collection(Ram(addresses=(0,)), spectrum, 0).make_basis("rows"), eigenpurposes)


def test_settings_follow_appendix_e() -> None:
    for game in GAMES:
        for size in SIZES:
            study = make_study(game, size)
            if size in ("paper", "full", "default"):
                assert (study.n_starts, study.transitions, study.max_episode_frames) == (6, 25_000, 10_000)
        # The default is the last variant of the full size, so the command shows what the documents show.
        last = [variant for variant in make_study(game, "full").variants if not variant.long][-1]
        assert make_study(game, "default").variants[0].name == last.name


# Claims


def judge(game: str, table: pd.DataFrame, **tables: pd.DataFrame) -> dict[str, str]:
    starts = pd.DataFrame({"collection": table.collection.unique()})
    data = {"rollouts": table, "starts": starts, **summarize(table), **tables}
    return {claim.id: claim.verdict for claim in judge_game(data, game=game)}


def test_claims_about_intent_follow_from_the_table(rng: np.random.Generator) -> None:
    names = ("pacman-intent", "pacman-ours-0")
    for own, shift, collections, expected in (
        (0.8, 0.3, 3, "holds"),
        (0.0, -0.3, 3, "does not hold"),
        (0.8, 0.3, 1, "not decided"),  # one collection refutes and compares nothing
    ):
        verdicts = judge("MsPacman", make_rollouts(rng, own=own, shift=shift, collections=collections))
        assert {verdicts[name] for name in names} == {expected}


def test_claims_about_freeway_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0).drop(columns="y")
    road = get_game("Freeway")
    table["region"] = [road.find_region([x]) for x in table.x]
    table["height"] = table.x.where(table.kind == "singular", 10.0)
    verdicts = judge("Freeway", table.assign(frames=2048))
    # Points are not judged on a part of an episode.
    names = ("freeway-lane", "freeway-heights", "freeway-walk", "freeway-445", "freeway-close-to-dqn")
    assert [verdicts[name] for name in names] == ["holds", "holds", "holds", "not decided", "not decided"]
    walk = table.kind == "walk"
    still = table.assign(x=10.0, height=10.0, region="bottom", score=walk * 1.0, farthest=walk * 170.0)
    verdicts = judge("Freeway", still)
    assert {verdicts[name] for name in names} == {"does not hold"}
    scores = still.score.where(~((table.kind == "singular") & (table.direction == 3)), 28.0)
    verdicts = judge("Freeway", still.assign(score=scores))
    assert (verdicts["freeway-445"], verdicts["freeway-close-to-dqn"]) == ("holds", "holds")


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
    rng: np.random.Generator, farthest: float, score: float, collections: int, verdict: str
) -> None:
    table = make_rollouts(rng, collections=collections).drop(columns="y")
    chosen = (table.kind == "singular") & (table.direction == 5)
    climbs = table.assign(variant="bytes", farthest=chosen * farthest, score=chosen * score)
    assert judge("Freeway", table, long=pd.concat([table, climbs]))["freeway-bytes"] == verdict


def test_claims_about_places_follow_from_the_table(rng: np.random.Generator) -> None:
    table = make_rollouts(rng, own=1.0, shift=1.0)
    singular = table.kind == "singular"
    goals = np.array(GOALS)[table.direction % len(GOALS)]
    verdicts = judge("MontezumaRevenge", table.assign(region=np.where(singular, goals, "")))
    assert (verdicts["montezuma-places"], verdicts["montezuma-kulkarni"]) == ("holds", "holds")
    rope = np.where(singular & (goals == "rope"), "rope", "")
    verdicts = judge("MontezumaRevenge", table.assign(region=rope))
    assert (verdicts["montezuma-places"], verdicts["montezuma-kulkarni"]) == ("partly", "does not hold")
    corners = np.where(singular, np.where(table.direction % 2, "lower left corner", "junction 26,26"), "")
    assert judge("MsPacman", table.assign(region=corners))["pacman-places"] == "holds"
    assert judge("MsPacman", table)["pacman-places"] == "does not hold"


# Stored results and the command


def test_stored_results_are_small_and_complete() -> None:
    files = [path for path in atari.RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2e6
    for game in GAMES:
        tables = pd.read_csv(atari.RESULTS / game.lower() / "rollouts.csv.gz")
        wanted = [variant.name for variant in make_study(game, "full").variants if not variant.long]
        assert list(tables.variant.unique()) == wanted
        assert tables.collection.nunique() == 3


def test_command_writes_tables_clips_options_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from eigenoptions import load_options

    atari.main(["freeway", "--quick", "--out", str(tmp_path)])
    folder = tmp_path / "freeway"
    assert "freeway-lane" in capsys.readouterr().out
    assert "Highlighted options" in (folder / "index.html").read_text()
    assert (folder / "walk-0.gif").read_bytes()[:3] == b"GIF"
    assert load_options(folder / "options.safetensors").provenance["game"] == "Freeway"
    tables = {path.name for path in (folder / "data").iterdir()}
    assert {"rollouts.csv.gz", "long.csv.gz", "starts.csv", "collections.csv", "highlights.csv"} <= tables
