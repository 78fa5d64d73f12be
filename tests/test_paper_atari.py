"""Judging Atari options: measures by hand, effects that are there are found and others are not, verdicts follow."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from reproduction.atari.claims import GOALS, NAMES, claims, notes
from reproduction.atari.measures import (
    FAR,
    KINDS,
    MEASURES,
    histogram,
    joined,
    measure,
    meetings,
    own_agreement,
    rarefied,
    reach,
)
from reproduction.atari.statistics import cliff, effect, effect_of, level
from reproduction.atari.study import highlight, reliable, rolled, summaries
from reproduction.claims import statements
from reproduction.experiment import OURS

LANES = {f"lane {i}": [[14 + 16 * i, 29 + 16 * i]] for i in range(10)}


def rolls(paths, stopped=None, actions=None, length=None, score=None):
    watched = np.asarray(paths, dtype=np.uint8)
    n, frames = watched.shape[:2]
    length = np.full(n, frames) if length is None else np.asarray(length)
    return SimpleNamespace(
        watched=watched,
        actions=np.zeros((n, frames), dtype=np.int8)
        if actions is None
        else np.asarray(actions, dtype=np.int8),
        stopped=np.zeros((n, frames), dtype=bool) if stopped is None else np.asarray(stopped, dtype=bool),
        length=length,
        died=length < frames,
        score=np.zeros(n) if score is None else np.asarray(score, dtype=float),
    )


def test_measures_of_a_path_by_hand():
    path = [[0], [8], [16], [40], [41], [42], [42], [60]]
    found = measure(
        rolls([path], stopped=[[0, 0, 1, 0, 0, 0, 1, 1]], actions=[[1, 1, 1, 1, 0, 0, 2, 1]]), (0,), LANES
    )
    assert found["dwell"] == 0.75  # 41 and 42 are one place: 40..43
    assert (found["settles"], found["arrives"], found["x"], found["away"]) == (1, 1, 42, 42)
    assert list(LANES)[int(found["region"][0])] == "lane 1"
    assert (found["places"], found["farthest"], found["height"]) == (5, 60, np.mean(path))
    assert (found["first_stop"], found["stopped"], found["steady"]) == (2, 3 / 8, 5 / 8)
    assert set(MEASURES) <= set(found)


def test_who_dies_early_does_not_dwell_and_has_no_place():
    found = measure(rolls([[[30, 30]] * 10] * 3, length=[10, 7, 3]), (0, 0), {})
    np.testing.assert_allclose(found["dwell"], [1.0, 0.4, 0.0])
    assert found["died"].tolist() == [0, 1, 1]
    assert np.isnan(found["x"]).tolist() == [False, False, True]
    assert found["region"].tolist() == [-1, -1, -1]
    assert found["arrives"].tolist() == [1, 0, 0]


def test_a_place_may_have_more_bytes_than_a_number_holds():
    """`find_starts` watches up to twelve bytes in games whose player it does not find."""
    path = np.zeros((1, 6, 12), dtype=np.uint8)
    path[0, 2:, 11] = 40  # differs in the last byte alone
    found = measure(rolls(path), np.zeros(12))
    assert (found["places"], found["dwell"], found["x12"], found["arrives"]) == (2, 1, 40, 1)


def test_staying_at_the_start_is_no_arriving():
    found = measure(rolls([[[5]] * 6, [[5 + FAR]] * 6]), (5,))
    assert found["settles"].tolist() == [1, 1]
    assert found["arrives"].tolist() == [0, 1]


def test_of_equal_places_the_first_met_is_modal():
    assert measure(rolls([[[0]] * 4 + [[90], [20], [20], [90]]]), (0,))["x"].tolist() == [90]


def test_without_a_position_the_rest_is_measured():
    found = measure(rolls(np.zeros((2, 4, 0)), score=[1, 2]), ())
    assert "dwell" not in found
    assert found["score"].tolist() == [1, 2]


def test_histograms_count_the_frames_that_were_played():
    counts = histogram(rolls([[[3], [3], [5], [0]]], length=[3]))
    assert counts.shape == (1, 256)
    assert (counts[0, 3], counts[0, 5], counts[0, 0]) == (2, 1, 0)


def test_agreement_is_between_starts_and_beyond_other_options(rng):
    spots = 60.0 * rng.integers(4, size=(40, 1, 2)) * np.ones((40, 5, 1))
    assert own_agreement(spots).mean() > 0.6  # each has its own place
    shuffled = np.stack([rng.permutation(spots[:, s]) for s in range(5)], axis=1)
    assert abs(own_agreement(shuffled).mean()) < 0.1  # same places, but not by option
    assert (
        own_agreement(np.zeros((7, 5, 1))).tolist() == [0.0] * 7
    )  # all at one place: nothing distinguishes them
    assert np.isnan(own_agreement(np.zeros((3, 1, 1)))).all()  # one start says nothing
    own, others = meetings(spots)
    off = ~np.eye(5, dtype=bool)
    assert own_agreement(spots).mean() == pytest.approx((own - others)[off].mean())


def test_a_lost_option_agrees_with_nothing():
    places = np.zeros((2, 3, 1))
    places[1] = np.nan
    own, others = meetings(places)
    assert own[0, 1] == 0.5
    assert others.max() == 0


def test_rarefaction_is_the_mean_over_all_choices(rng):
    points = rng.integers(0, 5, size=(7, 1)) * 20.0
    arrives = rng.random(7) < 0.7
    for k in (1, 3, 7):
        counts = [
            len(np.unique(points[list(some)][arrives[list(some)]] // FAR))
            for some in combinations(range(7), k)
        ]
        assert reach(points, arrives, k) == pytest.approx(np.mean(counts))
    assert rarefied([0, 4], 4, 2) == 1
    with pytest.raises(ValueError, match=r"k must be in 1\.\.7, the number of options, got 8"):
        reach(points, arrives, 8)


def test_cliffs_delta_is_the_share_of_wins_less_losses(rng):
    a, b = rng.integers(4, size=9).astype(float), rng.integers(4, size=7).astype(float)
    wins = np.sign(a[:, None] - b).mean()
    assert cliff(a, b) == pytest.approx(wins)
    assert np.isnan(cliff([], b))


def options(rng, *, shift=0.0, own=0.5, rank=12, bases=5, each=6, collections=3, starts=6, frames_away=60.0):
    """A made-up table: options with places of their own, which singular ones keep to with probability `own`."""
    tables = []
    for c in range(collections):
        for kind, many, count in (
            ("singular", 1, rank),
            ("random", bases, each),
            ("walk", 1, 8),
            ("published", 1, 4),
        ):
            for basis in range(many):
                goal = 200 * rng.random((count, 2))
                level_ = 0.5 + 0.1 * rng.standard_normal() * (kind == "random")
                for s in range(starts):
                    for sign in (1, -1) if kind in ("singular", "random") else (1,):
                        keeps = rng.random(count) < (own if kind == "singular" else 0.0)
                        at = np.where(
                            keeps[:, None], goal if sign > 0 else 200 - goal, 200 * rng.random((count, 2))
                        )
                        dwell = np.clip(
                            level_ + shift * (kind == "singular") + 0.2 * rng.standard_normal(count), 0, 1
                        )
                        tables.append(
                            {
                                "variant": np.zeros(count),
                                "collection": np.full(count, float(c)),
                                "start": np.full(count, float(s)),
                                "kind": np.full(count, float(KINDS.index(kind))),
                                "basis": np.full(count, float(basis)),
                                "direction": np.arange(count, dtype=float),
                                "sign": np.full(count, float(sign)),
                                "dwell": dwell,
                                "settles": (dwell >= 0.5).astype(float),
                                "arrives": (dwell >= 0.5).astype(float),
                                "away": np.full(count, frames_away),
                                "x": at[:, 0],
                                "y": at[:, 1],
                                "region": np.full(count, -1.0),
                                **{
                                    k: np.zeros(count)
                                    for k in ("places", "farthest", "died", "score", "height")
                                },
                                **{k: np.zeros(count) for k in ("first_stop", "stopped", "steady")},
                            }
                        )
    return joined(tables)


def test_an_effect_that_is_there_is_found_and_one_that_is_not_is_not(rng):
    none = effect(options(rng, own=0.0), "dwell", draws=500)
    assert not none.better
    assert not none.worse
    there = effect(options(rng, shift=0.3), "dwell", draws=500)
    assert there.better
    assert there.delta > 0.4
    assert there.above == there.groups == 15
    assert there.spreads > 2
    assert effect(options(rng, shift=-0.3), "dwell", draws=500).worse
    assert effect(options(rng), "agreement", draws=500).better
    assert not effect(options(rng, own=0.0), "agreement", draws=500).better


def test_intervals_cover_nothing_about_as_often_as_they_say():
    found = [
        effect(options(np.random.default_rng(seed), own=0.0, collections=6, starts=3), "dwell", draws=300)
        for seed in range(40)
    ]
    wrong = sum(e.difference.better or e.difference.worse for e in found)
    assert wrong <= 10  # 5% is what is said; few collections make it more


def test_effects_are_seeded_and_survive_a_table(rng):
    table = options(rng)
    one, two = (effect(table, "agreement", draws=200, rng=3) for _ in range(2))
    assert one == two
    again = effect_of(one.row())
    assert (again.better, again.spreads, str(again)) == (one.better, one.spreads, str(one))
    assert effect(table, "dwell", other="walk", draws=50).spread != effect(table, "dwell", draws=50).spread


def test_what_cannot_be_compared_is_told(rng):
    table = options(rng, collections=1)
    with pytest.raises(ValueError, match="collection 0 has no roll-outs of 'rows' or of 'random' to compare"):
        effect(table, "dwell", one="rows")


def test_levels_have_intervals(rng):
    found = level(options(rng, own=0.8), "agreement", "singular", draws=300)
    assert 0 < found.low <= found.mean <= found.high


def test_reliable_options_go_to_one_place_from_most_starts(rng):
    table = options(rng, own=1.0, shift=1.0, collections=1)
    mine = rolled(
        {"columns": list(table), "rollouts": np.stack(list(table.values()), axis=1)}, kind="singular"
    )
    assert len(reliable(mine)) == 24
    assert all(row["starts"] == 6 for row in reliable(mine))
    mine["arrives"][:] = 0
    assert reliable(mine) == []  # they were there from the beginning


def made_up(table, game="Breakout", regions=None):
    results = {
        "game": game,
        "variants": ["paper"],
        "columns": list(table),
        "rollouts": np.stack(list(table.values()), axis=1),
        "regions": regions or {},
        "actions": ["NOOP", "UP", "DOWN"],
        "frames": 200,
        "acts": 1,
        "starts": [{"collection": c, "start": 0, "frames": 1, "position": "0"} for c in range(3)],
        "collections": [
            {"variant": "paper", "collection": c, "rank": 12, "features": 1024} for c in range(3)
        ],
    }
    results |= summaries(results)
    results["highlights"] = highlight(results)
    return results


def test_verdicts_follow_from_what_is_in_the_table(rng):
    said = {}
    for name, given in (("good", {"own": 0.8, "shift": 0.3}), ("bad", {"own": 0.0, "shift": -0.3})):
        intent, ours = claims(made_up(options(rng, **given)))
        said[name] = intent.verdict, ours.verdict
        assert ours.section == "ours"
    assert said == {"good": ("holds", "holds"), "bad": ("does not hold", "does not hold")}


def test_one_collection_shows_what_is_there_and_refutes_nothing(rng):
    for given in ({"own": 0.8, "shift": 0.3}, {"own": 0.0}):
        results = made_up(options(rng, collections=1, **given))
        results["starts"] = results["starts"][:1]
        assert [claim.verdict for claim in claims(results)] == ["not decided"] * 2


def test_freeway_is_judged_by_lanes_heights_and_points(rng):
    table = options(rng, own=1.0, shift=1.0)
    table.pop("y")
    for i, (low, high) in enumerate(x[0] for x in LANES.values()):
        table["region"][(table["x"] >= low) & (table["x"] <= high)] = i
    singular = table["kind"] == 0
    table["height"] = np.where(singular, table["x"], 10.0)
    results = made_up(table, "Freeway", LANES)
    verdicts = [claim.verdict for claim in claims(results)]
    # Points are not judged on a part of an episode.
    assert verdicts == ["holds", "holds", "holds", "not decided", "not decided", "holds", "holds"]
    results["long"], results["long_frames"] = results["rollouts"], 8192
    assert [claim.verdict for claim in claims(results)][3:5] == ["does not hold", "does not hold"]
    table["height"] = np.full(len(singular), 10.0)
    table["x"] = np.full(len(singular), 10.0)
    table["region"] = np.full(len(singular), -1.0)
    table["farthest"] = np.where(table["kind"] == KINDS.index("walk"), 170.0, table["farthest"])
    table["score"] = np.where(table["kind"] == KINDS.index("walk"), 1.0, 0.0)
    still = [claim.verdict for claim in claims(made_up(table, "Freeway", LANES))]
    assert still[:3] == ["does not hold"] * 3
    table["score"][singular & (table["start"] == 0) & (table["direction"] == 3)] = 28.0
    results = made_up(table, "Freeway", LANES)
    assert [claim.verdict for claim in claims(results)][3:5] == ["holds", "holds"]
    assert all(notes(results))


def test_bytes_are_judged_by_who_climbs_and_scores(rng):
    table = options(rng)
    table.pop("y")
    results = made_up(table, "Freeway", LANES)
    results |= {"long_frames": 8192, "long_variants": ["paper", "bytes"]}

    def said(farthest, score, collections=3):
        mine = {**table, "variant": np.ones(len(table["kind"]))}
        singular = (table["kind"] == 0) & (table["direction"] == 5)
        mine |= {"farthest": np.where(singular, farthest, 20.0), "score": np.where(singular, score, 0.0)}
        both = joined([table, mine])
        results["long"] = np.stack(list(both.values()), axis=1)
        results["starts"] = results["starts"][:collections]
        (claim,) = (c for c in claims(results) if c.id == "freeway-bytes")
        return claim.verdict

    assert said(170.0, 20.0) == "holds"
    assert said(170.0, 0.0) == "partly"
    assert said(30.0, 0.0) == "does not hold"
    assert said(30.0, 0.0, collections=1) == "not decided"


def test_montezuma_and_pacman_are_judged_by_their_places(rng):
    table = options(rng, own=1.0, shift=1.0)
    goals = {name: [[0, 255], [i, i]] for i, name in enumerate(GOALS)}
    table["region"] = np.where(table["kind"] == 0, table["direction"] % len(goals), -1)
    places, similar = claims(made_up(table, "MontezumaRevenge", goals))[:2]
    assert (places.verdict, similar.verdict) == ("holds", "holds")
    assert "7.0 goals" in similar.evidence or "random ones at 0.0" in similar.evidence
    table["region"] = np.where(table["region"] == 3, 3, -1)  # the rope alone
    places, similar = claims(made_up(table, "MontezumaRevenge", goals))[:2]
    assert (places.verdict, similar.verdict) == ("partly", "does not hold")
    table["region"] = np.full(len(table["kind"]), -1.0)  # nowhere
    assert claims(made_up(table, "MontezumaRevenge", goals))[0].verdict == "does not hold"
    corners = {"corner upper left": [[0, 9], [0, 9]], "junction 24,24": [[20, 29], [20, 29]]}
    for places, told in ((2, "holds"), (1, "partly"), (0, "does not hold")):
        number = np.where(places == 2, table["direction"] % 2, 1)
        table["region"] = np.where((table["kind"] == 0) & (places > 0), number, -1)
        assert claims(made_up(table, "MsPacman", corners))[0].verdict == told


def one_sided(game, good):
    """Made-up results of a game in which every claim holds, or does not."""
    table = options(np.random.default_rng(0), own=1.0 if good else 0.0, shift=1.0 if good else -0.3)
    singular, walk = table["kind"] == 0, table["kind"] == KINDS.index("walk")
    regions = {
        "Freeway": LANES,
        "MontezumaRevenge": {name: [[0, 255], [i, i]] for i, name in enumerate(GOALS)},
        "MsPacman": {"corner upper left": [[0, 9], [0, 9]], "junction 24,24": [[20, 29], [20, 29]]},
    }[game]
    if game != "Freeway":
        table["region"] = np.where(singular & good, table["direction"] % len(regions), -1)
        return made_up(table, game, regions)
    table.pop("y")
    if good:
        table["region"] = np.where((table["x"] >= 14) & (table["x"] < 174), (table["x"] - 14) // 16, -1.0)
    else:
        table["x"][:] = 10.0
    best = singular & (table["direction"] == 3)
    table["height"] = np.where(singular, table["x"], 10.0)
    table["score"] = np.where(best & good, 28.0, 0.0) + np.where(walk & (not good), 1.0, 0.0)
    table["farthest"] = np.where(best & good, 170.0, 20.0) + np.where(walk & (not good), 150.0, 0.0)
    results = made_up(table, game, regions)
    long = joined([{**table, "variant": np.full(len(singular), v)} for v in (0.0, 1.0)])
    results |= {"long": np.stack(list(long.values()), axis=1), "long_frames": 8192}
    return results | {"long_variants": ["paper", "bytes"]}


@pytest.mark.parametrize("game", list(NAMES))
def test_every_claim_about_a_game_comes_out_both_ways(game):
    """And these are all claims of the list of statements, with those that are ours."""
    good, bad = ({c.id: c for c in claims(one_sided(game, side))} for side in (True, False))
    assert good.keys() == bad.keys()
    assert {name: c.verdict for name, c in good.items()} == dict.fromkeys(good, "holds")
    assert {name: c.verdict for name, c in bad.items()} == dict.fromkeys(bad, "does not hold")
    listed = {name for s in statements() for name in s.claims if name.startswith(f"{NAMES[game]}-")}
    assert listed == {name for name, claim in good.items() if claim.section != OURS}
    ours = {f"{NAMES[game]}-ours-0"} | ({"freeway-bytes"} if game == "Freeway" else set())
    assert {name for name, claim in good.items() if claim.section == OURS} == ours
    assert all(claim.lesson for claim in bad.values())


def test_another_way_than_the_papers_has_no_claims_of_the_paper(rng):
    results = made_up(options(rng), "MsPacman")
    results["variants"] = ["planned"]
    for name in ("effects", "levels", "means", "collections"):
        for row in results[name]:
            row["variant"] = "planned"
    (claim,) = claims(results)
    assert (claim.section, claim.id) == ("ours", "pacman-ours-way")
    assert "(MsPacman, planned)" in claim.sentence
    assert notes(results)[1][0] == "Means by kind, planned:"


def test_highlighted_options_lie_apart_and_have_reasons(rng):
    results = made_up(options(rng, own=1.0, shift=1.0))
    rows = [row for row in results["highlights"] if row["kind"] == "singular"]
    table = rolled(results, collection=0, kind="singular")
    spots = []
    for row in rows:
        at = (
            (table["direction"] == row["direction"])
            & (table["sign"] == row["sign"])
            & (table["start"] == row["start"])
        )
        spots.append(np.array([table["x"][at][0], table["y"][at][0]]))
        assert row["reason"] == "settles here from 6 of 6 starts"
    assert len(rows) == 6
    assert min(np.linalg.norm(a - b) for a, b in combinations(spots, 2)) >= 24
    assert [row["kind"] for row in results["highlights"]][6:] == ["published", "walk"]
