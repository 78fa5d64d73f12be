"""Checks of arguments: what is accepted, and that every refusal names the argument, the limit and the value."""

from __future__ import annotations

import re

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions._checks import number, one_of, whole


@pytest.mark.parametrize("value", [1, 3, np.int8(3), np.uint64(7)])
def test_whole_numbers_are_accepted(value):
    assert type(whole("n", value)) is int
    assert whole("n", value) == value


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, np.bool_(True), np.array([1]), float("nan")])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match="n must be a whole number from 1, got "):
        whole("n", value)


def test_limits_of_whole_numbers_are_inclusive():
    assert [whole("n", n, 0, 2) for n in (0, 1, 2)] == [0, 1, 2]
    for n in (-1, 3):
        with pytest.raises(ValueError, match=f"n must be a whole number in 0..2, got {n}"):
            whole("n", n, 0, 2)


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        ("[0, 1)", (0, 0.5, np.float32(0.25)), (-0.1, 1, 1.5)),
        ("(0, 1]", (1, 0.5), (0, 1.1)),
        ("[0, 1]", (0, 1), (-1e-9, 1 + 1e-9)),
        ("[0, inf)", (0, 1e300), (-1, float("inf"))),
    ],
)
def test_intervals(interval, inside, outside):
    assert [number("x", x, interval) for x in inside] == list(inside)
    for x in (*outside, float("nan"), True, "0.5", None, 0.5j):
        with pytest.raises(ValueError, match=r"x must be in .*, got "):
            number("x", x, interval)


def test_names_out_of_a_registry():
    assert one_of("method", "eigen", {"eigen": 1, "random": 2}) == "eigen"
    for value in ("Eigen", None, ["eigen"]):
        with pytest.raises(ValueError, match="method must be one of eigen, random, got "):
            one_of("method", value, {"eigen": 1, "random": 2})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda m: eo.discover(m, 4, gama=0.9),
            "method 'eigen' has no setting 'gama': did you mean 'gamma'?",
        ),
        (
            lambda m: eo.discover(m, n_option=4),
            "method 'eigen' has no setting 'n_option': did you mean 'n_options'?",
        ),
        (lambda m: eo.discover("MountainCar-v0", 2, steps=50, featurs="raw"), "did you mean 'features'?"),
        (
            lambda m: eo.q_learning(m, episods=3),
            "q_learning has no setting 'episods': did you mean 'episodes'?",
        ),
        (
            lambda m: eo.spectrum(eo.graph(m), cords=1),
            "operator 'normalized' has no setting 'cords': did you mean",
        ),
        (
            lambda m: eo.diffusion_time(m, optionchance=0.1),
            "diffusion_time() got an unexpected keyword argument ",
        ),
        (lambda m: eo.diffusion_time(m, optionchance=0.1), "'optionchance': did you mean 'option_chance'?"),
        (
            lambda m: eo.solve(m, [], gama=0.9),
            "solve() got an unexpected keyword argument 'gama': did you mean",
        ),
        (lambda m: eo.hitting_times(m, xyz=1), "hitting_times() got an unexpected keyword argument 'xyz'"),
    ],
)
def test_an_unknown_keyword_names_the_nearest(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call(eo.maze("i-maze"))


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: eo.maze("rooms:1x2", rng=rng),
        lambda rng: eo.spectrum(eo.graph(eo.maze("S..G")), rng=rng),
        lambda rng: eo.discover(eo.maze("S..G"), 2, rng=rng),
        lambda rng: eo.collect(eo.maze("S..G"), 5, rng=rng),
        lambda rng: next(eo.cycle(eo.maze("S..G"), n_options=2, steps=5, rng=rng)),
        lambda rng: eo.diffusion_estimate(eo.maze("S..G"), walks=2, rng=rng),
        lambda rng: eo.q_learning(eo.maze("S..G"), runs=1, episodes=1, rng=rng),
        lambda rng: eo.run_options(eo.envs.MazeEnv("S..G"), eo.discover(eo.maze("S..G"), 2), rng=rng),
        lambda rng: eo.discover("CartPole-v1", 2, steps=20, rng=rng),
    ],
    ids=["maze", "spectrum", "discover", "collect", "cycle", "estimate", "learning", "run", "samples"],
)
@pytest.mark.parametrize("rng", [-5, "x", 0.5])
def test_every_door_says_what_a_seed_is(call, rng):
    with pytest.raises((ValueError, TypeError), match=rf"rng must be .*, got {rng!r}"):
        call(rng)
