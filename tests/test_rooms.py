"""Passages and betweenness of graphs: closed forms and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.discovery.methods.bottleneck import compute_betweenness, find_passages, sum_dependencies
from tests import reference
from tests.graphs import complete, cycle, path, product, random_maze, star, together

GRAPHS = [path(1), path(2), path(9), cycle(5), cycle(16), cycle(17), cycle(18), star(6), complete(5)]
GRAPHS += [product(path(4), path(3)), together(cycle(4), path(3), csr_array((1, 1)))]
GRAPHS += [random_maze(seed, 6, 7, 0.3) for seed in range(6)]


@pytest.mark.parametrize("W", GRAPHS)
def test_passages_are_where_neighbours_do_not_meet(W):
    for radius in (1, 2, 3, 8):
        np.testing.assert_array_equal(find_passages(W, radius), reference.passages(W, radius))


@pytest.mark.parametrize("W", GRAPHS)
def test_betweenness_counts_shortest_paths(W):
    n = W.shape[0]
    for starts in (np.arange(n), np.arange(0, n, 3)):
        exact = reference.betweenness(W, starts.tolist())
        np.testing.assert_allclose(sum_dependencies(W, starts), exact, rtol=1e-12, atol=1e-12)


def test_betweenness_of_a_path_closed_form():
    """State i of a path lies between i states on one side and n - 1 - i on the other, both ways."""
    i = np.arange(50)
    np.testing.assert_allclose(compute_betweenness(path(50)), 2.0 * i * (49 - i), rtol=1e-12)


def test_passages_of_four_rooms_are_its_doorways(four_rooms):
    passages = four_rooms.coords[find_passages(eo.graph(four_rooms), 8)]
    assert passages.tolist() == [[3, 6], [6, 2], [7, 9], [10, 6]]
