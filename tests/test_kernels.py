"""Kernels against their slow, obvious twins: passages and betweenness."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions._kernels.passages import betweenness, passages
from tests import reference
from tests.graphs import complete, cycle, path, product, random_maze, star, together

# Rooms

GRAPHS = [path(1), path(2), path(9), cycle(5), cycle(16), cycle(17), cycle(18), star(6), complete(5)]
GRAPHS += [product(path(4), path(3)), together(cycle(4), path(3), csr_array((1, 1)))]
GRAPHS += [random_maze(seed, 6, 7, 0.3) for seed in range(6)]


@pytest.mark.parametrize("W", GRAPHS)
def test_passages_are_where_neighbours_do_not_meet(W):
    for radius in (1, 2, 3, 8):
        found = passages(W.indptr, W.indices, radius)
        np.testing.assert_array_equal(found, reference.passages(W, radius))


@pytest.mark.parametrize("W", GRAPHS)
def test_betweenness_counts_shortest_paths(W):
    n = W.shape[0]
    for sources in (np.arange(n), np.arange(0, n, 3)):
        found = betweenness(W.indptr, W.indices, sources.astype(np.int32))
        np.testing.assert_allclose(found, reference.betweenness(W, sources.tolist()), rtol=1e-12, atol=1e-12)


def test_betweenness_of_a_path():
    """State i of a path lies between i states on one side and n - 1 - i on the other, both ways."""
    n = 50
    W = path(n)
    i = np.arange(n)
    score = betweenness(W.indptr, W.indices, i.astype(np.int32))
    np.testing.assert_allclose(score, 2.0 * i * (n - 1 - i), rtol=1e-12)


def test_doors_of_four_rooms_are_passages(four_rooms):
    W = eo.graph(four_rooms)
    found = four_rooms.coords[passages(W.indptr, W.indices, 8)]
    assert found.tolist() == [[3, 6], [6, 2], [7, 9], [10, 6]]


def test_a_value_that_falls_leaves_the_highest_of_the_others():
    from eigenoptions._kernels.learning import _update

    q, highest = np.array([[5.0, 4.0, 1.0]]), np.array([5.0])
    _update(q, highest, 0, 0, -2.0)
    assert (q.tolist(), highest.tolist()) == ([[3.0, 4.0, 1.0]], [4.0])
    _update(q, highest, 0, 2, 6.0)
    assert (q.tolist(), highest.tolist()) == ([[3.0, 4.0, 7.0]], [7.0])


def test_where_no_option_may_start_an_action_is_chosen():
    from eigenoptions._kernels.walking import choose

    numbers = np.random.default_rng(0).integers(2**64, size=50, dtype=np.uint64)
    assert {choose(x, 3, 0, 0.9) for x in numbers} == {0, 1, 2}
    assert {choose(x, 3, 2, 0.9) for x in numbers} == {0, 1, 2, 3, 4}
