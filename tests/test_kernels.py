"""Kernels against their slow, obvious twins: graphs, eigenspaces, residuals, planning, passages."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions._kernels import planning
from eigenoptions._kernels.factors import factor
from eigenoptions._kernels.factors import solve as factor_solve
from eigenoptions._kernels.passages import betweenness, passages
from eigenoptions._kernels.spectra import canonical, eliminated, inverse_root, lifted, residual, survey
from eigenoptions.options import solver
from tests import reference
from tests.graphs import complete, cycle, path, product, random_graph, random_maze, star, together


def random_moves(rng):
    S, A = int(rng.integers(1, 200)), int(rng.choice([1, 2, 3, 4, 5, 9]))
    return rng.integers(S, size=(S, A)).astype(np.int32)


# Graphs and eigenspaces -----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.booleans())
def test_a_survey_of_a_graph(seed, changed):
    W = random_graph(seed) if seed % 2 else random_maze(seed % 1000, 4, 5)
    if changed and W.nnz:
        # One weight of two opposite ones grows, or is gone.
        W.data[seed % W.nnz] *= 1.0 if seed % 3 else 2.0
        W.data[(seed + 1) % W.nnz] *= 0.0 if seed % 5 else 1.0
        W.eliminate_zeros()
    degree, part, colour, n_parts, asymmetry, good = survey(W.indptr, W.indices, W.data)
    assert good
    known_degree, known_part, known_colour, known_asymmetry = reference.survey(W)
    np.testing.assert_allclose(degree, known_degree, rtol=1e-14)
    assert asymmetry == known_asymmetry
    if np.isfinite(asymmetry):
        assert part.tolist() == known_part
        assert n_parts == len(set(known_part))
        assert colour.tolist() == list(known_colour)


@given(st.integers(0, 10**6), st.sampled_from([-1, 0, 10**6]), st.sampled_from([-1.0, 0.0, np.inf, np.nan]))
def test_a_survey_notices_arrays_that_are_not_in_order(seed, place, weight):
    """One number of them is changed: no kernel may read outside them."""
    W = random_maze(seed % 1000, 4, 5)
    for which, wrong in enumerate((place, place, weight)):
        arrays = [W.indptr.copy(), W.indices.copy(), W.data.copy()]
        arrays[which][seed % len(arrays[which])] = wrong
        indptr, indices, weights = (a.tolist() for a in arrays)
        fine = indptr[0] == 0 and indptr[-1] == len(indices) and indptr == sorted(indptr)
        rows = [indices[i:j] for i, j in pairwise(indptr)] if fine else []
        fine = fine and all(0 <= j < len(rows) for row in rows for j in row)
        fine = fine and all(row == sorted(set(row)) for row in rows) and all(0 < w < np.inf for w in weights)
        assert survey(*arrays)[-1] == fine
    assert not survey(W.indptr, W.indices[:-1], W.data[:-1])[-1]
    assert not survey(W.indptr, W.indices, W.data[:-1])[-1]


@given(st.integers(0, 10**6))
def test_a_sparse_factor_in_any_order(seed):
    rng = np.random.default_rng(seed)
    W = random_graph(seed) if seed % 2 else random_maze(seed % 1000, 4, 5)
    n = W.shape[0]
    A = csr_array(W * rng.standard_normal()) + csr_array(np.diag(rng.standard_normal(n)))
    A, order, shift = (
        csr_array((A + A.T) / 2),
        rng.permutation(n).astype(np.int32),
        float(rng.standard_normal()),
    )
    found = factor(A.indptr, A.indices, A.data, order, shift)
    begin, row, entry, pivot = found
    L = np.eye(n) + csr_array((entry, row, begin), shape=(n, n)).toarray().T
    full = A.toarray() + shift * np.eye(n)
    size = np.abs(L) @ np.abs(np.diag(pivot)) @ np.abs(L.T)
    np.testing.assert_array_less(
        np.abs(L @ np.diag(pivot) @ L.T - full[np.ix_(order, order)]), 1e-13 * size + 1e-300
    )
    # Sylvester's law, and solutions.
    if size.max() < 1e3 and np.linalg.cond(full) < 1e6:
        assert (pivot < 0).sum() == (np.linalg.eigvalsh(full) < 0).sum()
        B = rng.standard_normal((3, n))
        np.testing.assert_allclose(factor_solve(*found, order, B) @ full, B, atol=1e-6)


@given(st.integers(0, 10**6))
def test_elimination_of_one_colour_is_a_schur_complement(seed):
    """Of random weights on a bipartite graph."""
    rng = np.random.default_rng(seed)
    W = random_maze(seed % 1000, 4, 5)
    weights = np.triu(W.toarray() * 10 ** rng.uniform(-2, 2, W.shape))
    W = csr_array(weights + weights.T)
    degree, _, colour, *_ = survey(W.indptr, W.indices, W.data)
    linked = np.flatnonzero(degree)
    W, degree, colour = csr_array(W[linked][:, linked]), degree[linked], colour[linked]
    keep, gone = np.flatnonzero(colour), np.flatnonzero(colour == 0)
    L = reference.dense_laplacian(W, "normalized")
    root = degree**-0.5
    parts = eliminated(W.indptr, W.indices, W.data, root, keep)
    M = csr_array(parts, shape=(len(keep), len(keep))).toarray()
    inner = np.linalg.solve(L[np.ix_(gone, gone)], L[np.ix_(gone, keep)])
    np.testing.assert_allclose(M, L[np.ix_(keep, keep)] - L[np.ix_(keep, gone)] @ inner, atol=1e-13)
    np.testing.assert_array_equal(M, M.T)
    # Eigenvectors of the whole come back from the rest.
    values, vectors = np.linalg.eigh(L)
    low = values < 0.8
    rows = np.ascontiguousarray(vectors[keep][:, low].T)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    found = lifted(W.indptr, W.indices, W.data, root, keep, gone, rows, values[low])
    np.testing.assert_allclose(L @ found.T, found.T * values[low], atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-13)


@given(st.integers(0, 10**6))
def test_the_canonical_basis_by_projectors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    edges = np.unique([0, *rng.integers(1, n, 3), n])
    rows = np.ascontiguousarray(np.linalg.qr(rng.standard_normal((n, n)))[0])
    known = np.concatenate([reference.canonical(rows[a:b]) for a, b in pairwise(edges)])
    error = np.full(n, 1e-16)
    accuracy = canonical(rows, edges, error)
    np.testing.assert_allclose(rows, known, atol=1e-8)
    assert ((accuracy >= error) & (accuracy < 1e-9)).all()


# Residuals ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.booleans())
def test_residuals_are_exact_where_doubles_lose_every_digit(seed, normalized):
    W = random_maze(seed % 1000, 6, 6)
    values, vectors = np.linalg.eigh(
        reference.dense_laplacian(W, "normalized" if normalized else "combinatorial")
    )
    degree = np.asarray(W.sum(axis=1)).ravel()
    n = len(degree)
    root = inverse_root(degree) if normalized else (np.ones(n), np.zeros(n))
    low = 1e-17 * np.random.default_rng(seed).standard_normal((n, n))
    # A null space of nothing, so that nothing is removed.
    rest = np.arange(n), np.arange(0), np.zeros(n, dtype=np.int32), np.zeros(n)
    graph = (W.indptr, W.indices, W.data, degree, *root, *rest)
    found = residual(graph, vectors.T.copy(), low.T.copy(), values).T
    exact = reference.residual(W, normalized, vectors, low, values)
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-29)


@given(st.integers(0, 10**6))
def test_residuals_without_one_colour_are_those_of_the_whole(seed):
    """Where the eliminated states solve their own equations, the residual of the others is that of the whole."""
    W = random_maze(seed % 1000, 6, 6)
    degree, _, colour, *_ = survey(W.indptr, W.indices, W.data)
    linked = np.flatnonzero(degree)
    W, degree, colour = csr_array(W[linked][:, linked]), degree[linked], colour[linked]
    keep, gone = np.flatnonzero(colour), np.flatnonzero(colour == 0)
    L = reference.dense_laplacian(W, "normalized")
    M = L[np.ix_(keep, keep)] - L[np.ix_(keep, gone)] @ L[np.ix_(gone, keep)]
    X = np.random.default_rng(seed).standard_normal((5, len(keep)))
    values = np.linspace(0.0, 1.0, 5)
    rest = keep, gone, np.zeros(len(keep), dtype=np.int32), np.zeros(len(keep))
    graph = (W.indptr, W.indices, W.data, degree, *inverse_root(degree), *rest)
    found = residual(graph, X, np.zeros_like(X), values)
    np.testing.assert_allclose(found, X @ M - values[:, None] * X, atol=1e-13)


# Planning ---------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999]))
def test_climb_reaches_the_fixed_point_to_the_last_bit(seed, gamma):
    """Rounding is monotone: whatever the order of updates, the bits are the same."""
    rng = np.random.default_rng(seed)
    nxt = random_moves(rng)
    E = rng.standard_normal((len(nxt), planning.LANES))
    E[:, 1] = np.round(E[:, 1])
    E[:, 2] = 0.1
    X = E.copy()
    planning.climb(planning.moves(np.arange(len(nxt), dtype=np.int32), nxt), E, X, gamma)
    for j in range(planning.LANES):
        np.testing.assert_array_equal(X[:, j], reference.climbed(nxt, E[:, j], gamma))


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999]))
def test_plan_takes_the_actions_of_the_tie_rule(seed, gamma):
    """The compiled rule against `solver.first_best`, with differences on both sides of the tolerance."""
    rng = np.random.default_rng(seed)
    nxt = random_moves(rng)
    S, m = len(nxt), int(rng.integers(1, 20))
    F = np.round(rng.standard_normal((m, S))) + 10.0 ** rng.uniform(-14, -6, (m, 1)) * rng.standard_normal(
        (m, S)
    )
    limits = solver.tolerance(np.abs(F).max(axis=1), 10.0 ** rng.uniform(-15, -9, m))
    policy, value = np.empty((m, S), dtype=np.int8), np.empty((m, S))
    order = rng.permutation(S).astype(np.int32)
    place = np.argsort(order).astype(np.int32)
    block = int(rng.choice([8, planning.BLOCK, S]))
    planning.plan(planning.moves(order, place[nxt[order]], block), F, limits, gamma, policy, value)
    for f, limit, row, v in zip(F, limits, policy, value, strict=True):
        expected, worth = reference.planned(nxt, f, gamma, limit)
        np.testing.assert_array_equal(row, expected)
        np.testing.assert_array_equal(v, worth)
        walks = [reference.walk(nxt, row, s) for s in range(S)]
        assert None not in walks


@given(st.integers(0, 10**6))
def test_moves_know_the_blocks_that_lead_into_a_block(seed):
    rng = np.random.default_rng(seed)
    nxt, size = random_moves(rng), int(rng.integers(1, 80))
    known = planning.moves(np.arange(len(nxt), dtype=np.int32), nxt, size)
    indptr, indices = known.indptr, known.indices
    assert (len(indptr) - 2) * size < len(nxt) <= (len(indptr) - 1) * size
    assert known.next.shape[1] % 4 == 0
    assert (known.next[:, nxt.shape[1] :] == nxt[:, :1]).all()
    block = np.arange(len(nxt)) // size
    for b in range(len(indptr) - 1):
        expected = {
            int(c) for c, t in zip(np.repeat(block, nxt.shape[1]), block[nxt].ravel(), strict=True) if t == b
        }
        assert sorted(indices[indptr[b] : indptr[b + 1]].tolist()) == sorted(expected - {b})


@given(st.integers(0, 10**6))
def test_run_follows_the_policy(seed):
    rng = np.random.default_rng(seed)
    nxt = random_moves(rng)
    S, A = nxt.shape
    row = rng.integers(-1, A, size=S).astype(rng.choice([np.int8, np.int16, np.int64]))
    row[rng.integers(S)] = -1
    length, end = np.empty(S, dtype=np.int32), np.empty(S, dtype=np.int32)
    stuck = planning.run(nxt, row, length, end)
    walks = [reference.walk(nxt, row, s) for s in range(S)]
    if stuck >= 0:
        assert walks[stuck] is None
    else:
        assert [(int(a), int(b)) for a, b in zip(length, end, strict=True)] == walks


# Rooms ------------------------------------------------------------------------------------------------------

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


def test_values_pass_between_blocks_that_are_not_neighbours():
    """The last state of the first block jumps into the third one, which the sweep has not yet raised."""
    n, gamma = 3 * planning.BLOCK, 0.9
    nxt = np.repeat(np.arange(n, dtype=np.int32)[:, None], 2, axis=1)
    last, jump, prize = planning.BLOCK - 1, 2 * planning.BLOCK, n - 1
    nxt[last, 1], nxt[jump, 1] = jump, prize
    E = np.zeros((n, planning.LANES))
    E[prize] = 1.0
    X = E.copy()
    planning.climb(planning.moves(np.arange(n, dtype=np.int32), nxt, planning.BLOCK), E, X, gamma)
    assert X[[last, jump, prize], 0].tolist() == pytest.approx([gamma**2, gamma, 1.0])
    assert (X > 0).sum() == 3 * planning.LANES


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
