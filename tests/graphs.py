"""Graphs whose spectra are known, and random ones."""

from __future__ import annotations

import numpy as np
from scipy.sparse import block_diag, csr_array, diags_array, eye_array, kron

import eigenoptions as eo
from eigenoptions.mdp.mazes import rooms_map


def path(n):
    ones = np.ones(n - 1)
    return csr_array(diags_array([ones, ones], offsets=[-1, 1], shape=(n, n)))


def cycle(n):
    W = path(n).tolil()
    W[0, n - 1] = 1.0
    W[n - 1, 0] = 1.0
    return csr_array(W)


def product(A, B):
    """Cartesian product: the grid of two paths, the torus of two cycles."""
    moves_of_A = kron(A, eye_array(B.shape[0]))
    moves_of_B = kron(eye_array(A.shape[0]), B)
    return csr_array(moves_of_A + moves_of_B)


def complete(n):
    return csr_array(np.ones((n, n)) - np.eye(n))


def star(n):
    W = np.zeros((n, n))
    W[0, 1:] = 1.0
    W[1:, 0] = 1.0
    return csr_array(W)


def hypercube(d):
    W = path(2)
    for _ in range(d - 1):
        W = product(W, path(2))
    return W


def together(*parts):
    return csr_array(block_diag(parts))


def linked(A, B, weight):
    """Two graphs joined by one edge, from the last state of A to the first of B."""
    W = block_diag([A, B]).tolil()
    n = A.shape[0]
    W[n - 1, n] = weight
    W[n, n - 1] = weight
    return csr_array(W)


def rooms(rows, cols, size):
    """A symmetric tiling of rooms, with many repeated eigenvalues.

    Lanczos iteration misses copies of them.
    """
    return eo.graph(eo.maze(rooms_map(rows, cols, size, centred=True)))


def random_maze(seed, high=14, wide=14, share=0.3):
    rng = np.random.default_rng(seed)
    grid = np.where(rng.random((high, wide)) < share, "#", ".")
    text = "\n".join("".join(row) for row in grid)
    return eo.graph(eo.maze(text))


def random_graph(seed, most=12):
    """Random weights of several orders of magnitude, often in pieces or with loops."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most))
    weights = 10 ** rng.uniform(-2, 2, (n, n))
    has_edge = rng.random((n, n)) < rng.uniform(0.1, 0.8)

    W = np.triu(weights * has_edge)
    has_loops = rng.random() < 0.3
    if not has_loops:
        np.fill_diagonal(W, 0.0)
    return csr_array((W + W.T) / 2)
