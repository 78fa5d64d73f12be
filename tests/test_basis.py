"""One basis for all: every solver, seed and order of states gives the same eigenvectors and the same policies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import csr_array, csr_matrix, diags_array

import eigenoptions as eo
from eigenoptions import spectra
from eigenoptions.spectra.solvers import DENSE_HALF_UP_TO_STATES
from tests.graphs import (
    LARGE,
    complete,
    hypercube,
    linked,
    path,
    product,
    random_maze,
    rooms,
    star,
    together,
)
from tests.test_spectra import OPERATORS, check, close, half_cosines, lapack, separation


@pytest.mark.parametrize("operator", ["normalized", "combinatorial"])
@pytest.mark.parametrize("name", LARGE)
def test_dense_and_sparse_solver_and_two_seeds_give_the_same_vectors(name, operator):
    W, k = LARGE[name]
    dense = eo.spectrum(W, operator=operator, solver="dense")
    one, two = (eo.spectrum(W, k, operator, solver="sparse", rng=seed) for seed in (0, 1))
    norm = dense.values[-1]
    np.testing.assert_allclose(one.values, dense.values[:k], rtol=0, atol=1e-13 * norm)
    np.testing.assert_allclose(one.values, two.values, rtol=0, atol=1e-14 * norm)
    assert close(one, two) < 1e-9
    assert close(one, dense) < 1e-9
    cut = eo.spectrum(W, k - 1, operator, solver="sparse")
    assert close(cut, one) < 1e-9


def test_open_room_of_1600_states():
    """Thirteen pairs of equal eigenvalues among the first thirty-two."""
    W, seen = product(path(40), path(40)), []
    for solver, seed in (("dense", 0), ("sparse", 0), ("sparse", 1)):
        seen.append(eo.spectrum(W, 32, solver=solver, rng=seed))
    assert sum(high - low == 2 for low, high in spectra.clusters(seen[0].values)) >= 10
    assert max(close(seen[0], seen[1]), close(seen[0], seen[2])) < 1e-9


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(OPERATORS), st.integers(1, 20))
def test_solvers_agree_on_random_mazes(seed, operator, k):
    W = random_maze(seed)
    k = min(k, W.shape[0])
    dense = eo.spectrum(W, operator=operator, solver="dense")
    sparse = eo.spectrum(W, k, operator, solver="sparse", rng=seed + 1)
    np.testing.assert_allclose(sparse.values, dense.values[:k], rtol=0, atol=1e-12)
    # two solvers cannot agree better than rounding over the gap to the next eigenvalue
    assert close(sparse, dense) < 1e-9 + 1e-14 / separation(dense.values, k)


@pytest.mark.parametrize("W", [rooms(4, 4, 3), rooms(5, 5, 3), together(rooms(3, 3, 3), rooms(3, 3, 3))])
def test_nearly_equal_eigenvalues_do_not_turn_the_basis(W):
    """Rooms that hardly feel each other have eigenvalues 1e-8 apart: vectors blur, but which is which must not."""
    for operator in OPERATORS:
        dense = eo.spectrum(W, operator=operator, solver="dense")
        for seed in range(3):
            sparse = eo.spectrum(W, operator=operator, solver="sparse", rng=seed)
            assert close(sparse, dense) < 1e-6


@pytest.mark.parametrize(
    "shape",
    # Rows, columns and size of rooms: 600 to 1,000 states, with many repeated eigenvalues.
    [
        (1, 1, 26),
        (1, 1, 30),
        (2, 2, 13),
        (2, 2, 14),
        (2, 2, 15),
        (3, 3, 9),
        (3, 3, 10),
        (4, 4, 6),
        (4, 4, 7),
        (5, 5, 5),
        (6, 6, 4),
        (8, 8, 3),
    ],
)
def test_no_eigenvalue_is_missed_on_symmetric_tilings(shape):
    W = rooms(*shape)
    full = eigh(eo.laplacian(W).toarray(), eigvals_only=True)
    for seed in range(12):
        sp = eo.spectrum(W, 32 - seed, solver="sparse", rng=seed)
        np.testing.assert_allclose(sp.values, full[: 32 - seed], rtol=0, atol=1e-13)


def test_every_cut_through_repeated_eigenvalues_is_a_beginning():
    """The 6-cube repeats eigenvalues 1, 6, 15, 20, 15, 6, 1 times: cut anywhere, dense or sparse, in any scale."""
    W = hypercube(6)
    for operator in OPERATORS:
        full = eo.spectrum(W, operator=operator, solver="dense")
        for k in (1, 2, 3, 6, 7, 8, 15, 22, 30, 42, 57, 58, 63, 64):
            assert close(eo.spectrum(W, k, operator, solver="sparse", rng=k), full) < 1e-9


def test_a_shift_that_meets_a_pivot_of_zero():
    """The middle of the gap of a path of even length is 1, which is every diagonal entry."""
    W = path(40)
    sp = eo.spectrum(W, 20, solver="sparse")
    assert sp.values[19] < 1.0 < eo.spectrum(W, 21, solver="sparse").values[20]
    assert close(sp, eo.spectrum(W, solver="dense")) < 1e-9


def test_a_whole_space_of_one_eigenvalue_is_filled_with_fresh_directions():
    """Krylov spaces of a star and a complete graph have three and two dimensions; the rest must not be noise."""
    for W in (star(30), complete(30), together(*[path(2)] * 15)):
        for k in (2, 3, 5, 8, 15, 29, 30):
            for seed in range(3):
                sp = eo.spectrum(W, k, solver="sparse", rng=seed)
                assert close(sp, eo.spectrum(W, solver="dense")) < 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_the_unit_of_weights_does_not_matter(scale, solver):
    for W in (rooms(3, 3, 4), random_maze(1), together(path(9), star(9), csr_array((2, 2)))):
        for operator in OPERATORS:
            k = min(40, W.shape[0])
            plain = eo.spectrum(W, k, operator, solver=solver)
            scaled = eo.spectrum(csr_array(W * scale), k, operator, solver=solver)
            factor = scale if operator == "combinatorial" else 1.0
            np.testing.assert_allclose(scaled.values, plain.values * factor, rtol=0, atol=1e-12 * factor)
            assert close(scaled, plain) < 1e-9


@pytest.mark.parametrize("weight", [1e-10, 1e-12, 1e-14, 1e-16, 1e-20, 1e-40])
def test_a_link_so_weak_that_it_is_hardly_there(weight):
    """The tiny eigenvalue must not drown the others, and is never negative."""
    grid = product(path(12), path(11))
    W = linked(grid, grid, weight)
    for operator in ("normalized", "combinatorial"):
        dense = eo.spectrum(W, 8, operator, solver="dense")
        sparse = eo.spectrum(W, 8, operator, solver="sparse")
        assert dense.n_zero == sparse.n_zero == 1
        for sp in (dense, sparse):
            assert 0 <= sp.values[1] < 10 * weight + 1e-14
            check(W, sp, lapack(W, operator))
        assert close(dense, sparse) < 1e-9
        side = np.sign(sparse.vectors[:, 1])
        assert (side[: len(side) // 2] == side[0]).all()
        assert (side[len(side) // 2 :] == -side[0]).all()


def test_tiny_gaps_of_a_long_path():
    n = 3000
    for operator, values in (
        ("combinatorial", half_cosines(n)),
        ("normalized", 1 - np.cos(np.pi * np.arange(n) / (n - 1))),
    ):
        sp = eo.spectrum(path(n), 60, operator)
        np.testing.assert_allclose(sp.values, values[:60], rtol=1e-9, atol=1e-15)
        if operator == "combinatorial":
            v = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(60)) / n)
            v *= np.sign((v * sp.vectors).sum(axis=0)) / np.linalg.norm(v, axis=0)
            np.testing.assert_allclose(sp.vectors, v, atol=1e-9)


def test_a_barbell_has_one_tiny_eigenvalue():
    """Two cliques on a string: the second vector is one-signed on each clique, its value is not lost."""
    W = linked(linked(complete(15), path(300), 1.0), complete(15), 1.0)
    sp = eo.spectrum(W, 5)
    check(W, sp, lapack(W, "normalized"))
    assert 1e-6 < sp.values[1] < 1e-4
    assert (sp.vectors[:15, 1] > 0).all()
    assert (sp.vectors[-15:, 1] < 0).all()


def test_relabelling_the_states_permutes_the_vectors():
    """With generic weights nothing is equal, so not even a sign depends on the numbering."""
    rng = np.random.default_rng(5)
    W = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.2), 1)
    W = csr_array(W + W.T + np.diag(rng.random(29), 1) + np.diag(rng.random(29), -1))
    W = csr_array((W + W.T) / 2)
    order = rng.permutation(30)
    for solver in ("dense", "sparse"):
        a = eo.spectrum(W, 12, solver=solver)
        b = eo.spectrum(csr_array(W[order][:, order]), 12, solver=solver)
        np.testing.assert_allclose(a.values, b.values, atol=1e-13)
        np.testing.assert_allclose(a.vectors[order], b.vectors, atol=1e-9)


def test_auto_is_one_of_the_two():
    small, large = rooms(2, 2, 5), rooms(4, 4, 6)
    assert small.shape[0] <= DENSE_HALF_UP_TO_STATES < large.shape[0]
    for W, k, solver in (
        (small, 9, "dense"),
        (large, 9, "sparse"),
        (large, 300, "dense"),
        (large, None, "dense"),
    ):
        auto, named = eo.spectrum(W, k), eo.spectrum(W, k, solver=solver)
        np.testing.assert_array_equal(auto.values, named.values)
        np.testing.assert_array_equal(auto.vectors, named.vectors)


def test_forms_of_one_graph():
    W = random_maze(0)
    loops = csr_array(W + diags_array(np.ones(W.shape[0])))
    doubled = W.tocoo()
    doubled = csr_array(
        (
            np.concatenate([doubled.data / 2] * 2),
            (np.concatenate([doubled.row] * 2), np.concatenate([doubled.col] * 2)),
        ),
        shape=W.shape,
    )
    long = csr_array((W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64)), shape=W.shape)
    plain = eo.spectrum(W, 10)
    for other in (
        W.toarray(),
        csr_matrix(W),
        W.tocsc(),
        W.tocoo(),
        doubled,
        long,
        csr_array(W.astype(np.float32)),
    ):
        np.testing.assert_allclose(eo.spectrum(other, 10).vectors, plain.vectors, atol=1e-12)
    # a loop changes nothing where degrees do not matter
    np.testing.assert_allclose(
        eo.spectrum(loops, 10, "combinatorial").vectors,
        eo.spectrum(W, 10, "combinatorial").vectors,
        atol=1e-9,
    )


def test_a_stored_zero_is_no_edge():
    W = together(path(4), path(4)).tocoo()
    stored = csr_array(
        (np.append(W.data, [0.0, 0.0]), (np.append(W.row, [3, 4]), np.append(W.col, [4, 3]))), shape=W.shape
    )
    before = stored.nnz
    for solver in ("dense", "sparse"):
        sp = eo.spectrum(stored, solver=solver)
        assert sp.n_zero == 2
        assert close(sp, eo.spectrum(csr_array(W), solver=solver)) < 1e-12
    assert stored.nnz == before  # what was given is not touched
