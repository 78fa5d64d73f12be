"""Feature maps: shapes, scales, what is on, and that a file can name them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from scipy.sparse import issparse

import eigenoptions as eo
from eigenoptions._registry import feature_maps
from eigenoptions.samples.features import (
    Bits,
    FeatureMap,
    Fourier,
    OneHot,
    Raw,
    Tiles,
    compute_features,
    features_from_dict,
    features_to_dict,
    find_bounds,
    make_features,
)

LOW = (-1.2, -0.07)
HIGH = (0.6, 0.07)
SPACE = Box(np.array(LOW, dtype=np.float32), np.array(HIGH, dtype=np.float32))


# Maps that are made from data: tests/deep/test_deep.py and tests/vectors/test_cells.py.
MADE_FROM_DATA = ("deep", "clusters", "cells")


@pytest.mark.parametrize(
    "name", [name for name in feature_maps.names() if name not in MADE_FROM_DATA]
)
def test_to_dict_of_every_map_is_json(name: str) -> None:
    space = Discrete(5) if name == "one-hot" else SPACE
    phi = make_features(name, space)
    assert features_from_dict(json.loads(json.dumps(features_to_dict(phi)))) == phi
    assert hash(phi) == hash(make_features(name, space))


def test_fourier_agrees_with_the_closed_form(rng: np.random.Generator) -> None:
    x = rng.random((50, 2)) * (np.array(HIGH) - LOW) + LOW
    phi = Fourier(LOW, HIGH, order=4)
    scaled = (x - LOW) / (np.array(HIGH) - LOW)
    want = []
    for i in range(5):
        for j in range(5):
            want.append(np.cos(np.pi * (i * scaled[:, 0] + j * scaled[:, 1])))
    np.testing.assert_allclose(phi(x), np.stack(want, axis=1), atol=1e-12)

    # Orthogonal on a regular grid but for sums and differences.
    ticks = (np.arange(64) + 0.5) / 64
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    wave = Fourier((0.0, 0.0), (1.0, 1.0), order=4)(grid)
    assert np.allclose((wave[:, 1] * wave[:, 2]).mean(), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("width", "order", "coupled", "count"),
    [(2, 3, 2, 16), (4, 3, 2, 67), (4, 3, 1, 13), (6, 2, 6, 729)],
)
def test_fourier_coupled_limits_the_number_of_features(
    width: int, order: int, coupled: int, count: int
) -> None:
    phi = Fourier((0.0,) * width, (1.0,) * width, order=order, coupled=coupled)
    assert phi.n_features == count
    assert (np.count_nonzero(phi.frequencies, axis=1) <= coupled).all()
    assert len({tuple(c) for c in phi.frequencies}) == count


def test_maps_clip_observations_outside_the_bounds() -> None:
    for phi in (Fourier(LOW, HIGH), Tiles(LOW, HIGH), Raw(LOW, HIGH)):
        edge_and_outside = phi(np.array([HIGH, (5.0, 5.0)]))
        if issparse(edge_and_outside):
            edge_and_outside = edge_and_outside.toarray()
        edge, outside = edge_and_outside
        np.testing.assert_allclose(edge, outside, rtol=0, atol=1e-12)


def test_tiles_of_each_grid_are_shifted(rng: np.random.Generator) -> None:
    phi = Tiles((0.0, 0.0), (1.0, 1.0), tiles=4, tilings=8)
    assert phi.n_features == 8 * 25
    x = rng.random((300, 2))
    on = phi(x)
    assert issparse(on)
    assert (on.sum(axis=1) == 8).all()
    assert (np.diff(on.indptr) == 8).all()
    assert np.array_equal(
        on.indices.reshape(-1, 8) // 25, np.tile(np.arange(8), (300, 1))
    )
    near = phi(x + 1e-9).toarray()
    assert (np.abs(near - on.toarray()).sum(axis=1) == 0).mean() > 0.99
    # Halfway across a tile, about half of the tiles change.
    here = phi(x * 0.8).toarray()
    there = phi(x * 0.8 + [0.125, 0]).toarray()
    n_changed = (there != here).sum(axis=1) / 2
    assert 3 <= n_changed.mean() <= 5


def test_tiles_with_size_spread_evenly(rng: np.random.Generator) -> None:
    width = 12
    phi = Tiles((0.0,) * width, (1.0,) * width, size=512)
    on = phi(rng.random((2000, width)))
    assert on.shape == (2000, 512)
    assert (on.sum(axis=1) == 8).all()
    share = on.sum(axis=0) / on.sum()
    assert 0.5 / 512 < share.min() <= share.max() < 2.0 / 512
    again = Tiles((0.0,) * width, (1.0,) * width, size=512)(np.full((1, width), 0.3))
    assert np.array_equal(again.toarray(), phi(np.full((1, width), 0.3)).toarray())


def test_bits_agree_with_a_loop(rng: np.random.Generator) -> None:
    ram = rng.integers(256, size=(3, 128), dtype=np.uint8)
    slow = [
        [bool(byte >> i & 1) for byte in row.tolist() for i in range(8)] for row in ram
    ]
    assert Bits()(ram).tolist() == slow
    assert Bits()(np.array([[True, False]])).tolist() == [[True, False]]


def test_one_hot_and_raw_are_the_identity(rng: np.random.Generator) -> None:
    assert np.array_equal(OneHot(4)(np.array([1, 3])).toarray(), np.eye(4)[[1, 3]])
    picture = rng.integers(256, size=(5, 4, 3), dtype=np.uint8)
    assert np.array_equal(Raw()(picture), picture.reshape(5, 12).astype(float))


def test_find_bounds_that_are_not_finite_come_from_data() -> None:
    space = Box(
        np.array([-1.0, -np.inf, -3e38]),
        np.array([1.0, np.inf, 3e38]),
        dtype=np.float64,
    )
    seen = np.array([[0.0, -2.0, 7.0], [0.5, 4.0, 7.0]])
    # What never moves gets a width of 1.
    assert find_bounds(space, seen) == ((-1.0, -2.0, 7.0), (1.0, 4.0, 8.0))
    assert find_bounds(None, seen[:, :2]) == ((0.0, -2.0), (0.5, 4.0))
    with pytest.raises(ValueError, match=r"dimension 1 .*: give low and high"):
        find_bounds(space)
    assert make_features("fourier", space, seen).low == (-1.0, -2.0, 7.0)
    assert make_features("fourier", SPACE).high == HIGH, (
        "float32 bounds come without their tail"
    )


@pytest.mark.parametrize(
    ("width", "settings"), [(8, (3, 2)), (25, (2, 2)), (161, (3, 1)), (5000, (1, 1))]
)
def test_fourier_of_many_dimensions_has_few_features_by_default(
    width: int, settings: tuple[int, int]
) -> None:
    space = Box(0.0, 1.0, (width,))
    phi: Any = make_features("fourier", space)
    assert (phi.order, phi.coupled) == settings
    larger: Any = make_features("fourier", space, order=2, coupled=2)
    assert larger.order == 2


def test_discover_of_one_hot_floats_works_by_default() -> None:
    walk = eo.collect(eo.maze("open:7x23"), 3000, rng=0)
    data = np.eye(161)[walk.obs], walk.action, np.eye(161)[walk.next_obs]
    # States that were never visited are constant columns, which are left out.
    n_visited = len(np.unique([walk.obs, walk.next_obs]))
    options = eo.discover(data, 4, features=eo.Fitted(iterations=2))
    assert options.features.n_features == 3 * n_visited + 1


def test_tiles_for_a_large_space_are_hashed() -> None:
    assert make_features("tiles", SPACE).size is None
    assert make_features("tiles", Box(0.0, 1.0, (4,))).size == 2048
    assert make_features("tiles", Box(0.0, 1.0, (4,)), size=100, tilings=2) == Tiles(
        (0.0,) * 4, (1.0,) * 4, tilings=2, size=100
    )


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: make_features("wavelets", SPACE), "features"),
        (lambda: make_features("one-hot", SPACE), "Discrete"),
        (lambda: make_features("fourier", Dict({"a": Discrete(2)})), "Box"),
        (lambda: make_features("fourier"), "bounds"),
        (lambda: make_features("one-hot"), "Discrete"),
        (
            lambda: make_features("raw", Box(0, 1, (70_000,)))(np.zeros((1, 70_000))),
            "65536",
        ),
        (lambda: make_features("tiles", MultiBinary(3)), "Box"),
        (lambda: Fourier(LOW, HIGH, order=0), "order"),
        (
            lambda: Fourier((0.0,) * 9, (1.0,) * 9, order=9, coupled=9)(
                np.zeros((1, 9))
            ),
            "65536.*order",
        ),
        (lambda: Tiles((0.0,) * 12, (1.0,) * 12)(np.zeros((1, 12))), "size"),
        (lambda: Tiles((0.0,), (0.0,)), "low"),
        (lambda: Tiles((0.0,), (np.inf,)), "finite"),
        (lambda: Raw([[0.0]], (1.0,)), "low"),
        (lambda: compute_features(lambda x: x * 1e308, np.ones((2, 2))), "1e150"),
        (lambda: Fourier(LOW, HIGH)(np.array([[0.0, np.nan]])), "observation 0"),
        (lambda: Fourier(LOW, HIGH)(np.zeros((1, 3))), "2 dimensions"),
        (lambda: Fourier(LOW, HIGH)(np.zeros(2)), "batch"),
        (lambda: Raw()(np.array([{"a": 1}])), "features="),
        (lambda: OneHot(3)(np.array([3])), "states"),
        (lambda: OneHot(3)(np.array([0.5])), "state numbers"),
        (lambda: Bits()(np.zeros((2, 2))), "bytes"),
        (lambda: features_from_dict({"map": "wavelets"}), "wavelets"),
        (lambda: features_from_dict({"map": "bits", "size": 3}), "bits"),
        (lambda: features_from_dict({"function": "f"}), "features="),
        (lambda: compute_features(lambda x: x[:1], np.eye(2)), "2 observations"),
        (lambda: compute_features(lambda x: x * np.inf, np.ones((2, 2))), "finite"),
        (lambda: compute_features(lambda x: x.astype(str), np.ones((2, 2))), "numbers"),
    ],
)
def test_bad_settings_and_observations_raise(call: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call()


def test_feature_map_of_a_new_class_is_found_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feature_maps, "_entries", dict(feature_maps._entries))

    @dataclass(frozen=True)
    class Powers(FeatureMap):
        order: int = 2
        name: ClassVar[str] = "powers"

        def __call__(self, obs: Any) -> np.ndarray:
            return np.concatenate(
                [np.asarray(obs) ** k for k in range(1, self.order + 1)], axis=1
            )

    cubic = eo.Fitted("powers", order=3)
    options = eo.discover("MountainCar-v0", 2, steps=400, features=cubic)
    assert options.features == Powers(3)
    assert features_from_dict(features_to_dict(options.features)) == Powers(3)
    tiled = eo.Fitted("powers", tiles=3)
    with pytest.raises(TypeError, match="order"):
        eo.discover("MountainCar-v0", 2, steps=400, features=tiled)
