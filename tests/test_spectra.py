"""Spectra: closed forms, the definition, one basis for every solver and seed, nothing missed, bad input."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import spectra
from tests import reference
from tests.graphs import (
    LARGE,
    complete,
    cycle,
    hypercube,
    path,
    product,
    random_graph,
    star,
    together,
)
from tests.test_mdp import refused

OPERATORS = ["normalized", "combinatorial", "random-walk"]


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Notes about components are tested where they are meant."""
    caplog.set_level(logging.ERROR, "eigenoptions")


# What must hold ---------------------------------------------------------------------------------------------


def separation(values, k):
    """The smallest gap between different eigenvalues that the first k vectors feel."""
    gaps = np.diff(values)[: min(k, len(values) - 1)]
    scale = max(abs(values[-1]), 1e-300)
    return min([g for g in gaps / scale if g > 1e-9], default=1.0)


def close(a, b):
    """How far the eigenvectors of two spectra are from each other, at most; the shorter one counts."""
    k = min(len(a.values), len(b.values))
    return float(np.abs(a.vectors[:, :k] - b.vectors[:, :k]).max())


def check(W, sp, full):
    """Eigen-equation, unit columns, orthogonality, order, and values against LAPACK on the definition."""
    k = sp.vectors.shape[1]
    L = reference.dense_laplacian(W, sp.operator)
    norm = max(abs(L).max(), 1e-300)
    assert len(sp.values) == k
    assert (np.diff(sp.values) >= -1e-13 * norm).all()
    assert sp.values.min() >= 0
    np.testing.assert_allclose(sp.values, full[:k], rtol=0, atol=2e-12 * norm)
    # vectors of one cluster of equal eigenvalues are mixed, so values differ by SAME at most
    np.testing.assert_allclose(L @ sp.vectors, sp.vectors * sp.values, rtol=0, atol=3e-9 * norm)
    np.testing.assert_allclose(np.linalg.norm(sp.vectors, axis=0), 1.0, atol=1e-12)
    if sp.operator != "random-walk":
        np.testing.assert_allclose(sp.vectors.T @ sp.vectors, np.eye(k), atol=1e-10)


def lapack(W, operator):
    """All eigenvalues, by LAPACK on the definition."""
    kind = "combinatorial" if operator == "combinatorial" else "normalized"
    return eigh(reference.dense_laplacian(W, kind), eigvals_only=True)


# Closed forms -----------------------------------------------------------------------------------------------


def half_cosines(n):
    """Eigenvalues of the combinatorial Laplacian of a path."""
    return 2 - 2 * np.cos(np.pi * np.arange(n) / n)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("W", "operator", "values"),
    [
        (path(40), "combinatorial", half_cosines(40)),
        (path(40), "normalized", 1 - np.cos(np.pi * np.arange(40) / 39)),
        (path(40), "random-walk", 1 - np.cos(np.pi * np.arange(40) / 39)),
        (cycle(30), "combinatorial", np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(30) / 30))),
        (cycle(31), "normalized", np.sort(1 - np.cos(2 * np.pi * np.arange(31) / 31))),
        (complete(20), "combinatorial", [0, *[20] * 19]),
        (complete(20), "normalized", [0, *[20 / 19] * 19]),
        (star(25), "combinatorial", [0, *[1] * 23, 25]),
        (star(25), "normalized", [0, *[1] * 23, 2]),
        (hypercube(6), "combinatorial", np.sort([2.0 * bin(i).count("1") for i in range(64)])),
        (hypercube(7), "normalized", np.sort([2.0 * bin(i).count("1") / 7 for i in range(128)])),
        (
            product(path(9), path(7)),
            "combinatorial",
            np.sort(np.add.outer(half_cosines(9), half_cosines(7)).ravel()),
        ),
        (product(cycle(8), cycle(8)), "normalized", None),
        (together(complete(5), complete(5), csr_array((2, 2))), "combinatorial", [0] * 4 + [5] * 8),
    ],
)
def test_closed_forms(W, operator, values, solver):
    if values is None:  # a torus: means of the values of its cycles
        one = 1 - np.cos(2 * np.pi * np.arange(8) / 8)
        values = np.sort(np.add.outer(one, one).ravel()) / 2
    sp = eo.spectrum(W, operator=operator, solver=solver)
    np.testing.assert_allclose(sp.values, values, rtol=0, atol=1e-12)
    check(W, sp, np.asarray(values, dtype=float))


def test_vectors_of_a_path():
    """Cosines, largest at the first end, positive there."""
    n = 30
    sp = eo.spectrum(path(n), operator="combinatorial")
    x = np.arange(n) + 0.5
    for k in range(1, n):
        v = np.cos(np.pi * k * x / n)
        peak = np.flatnonzero(np.abs(v) > (1 - 1e-9) * np.abs(v).max())[0]
        np.testing.assert_allclose(sp.vectors[:, k], v * np.sign(v[peak]) / np.linalg.norm(v), atol=1e-12)


def test_open_room_runs_along_its_diagonals(open_room):
    """The pair after the constant: the first peaks by the first corner, the second by the next corner, always."""
    sp = eo.spectrum(eo.graph(open_room), k=3)
    first, second = (sp.vectors[:, i].reshape(10, 10) for i in (1, 2))
    np.testing.assert_allclose(first, first.T, atol=1e-12)
    np.testing.assert_allclose(second, second[::-1, ::-1].T, atol=1e-12)
    assert (
        first.argmax() == 11
    )  # not the corner itself: vectors of this operator go with the root of the degree
    assert second.argmax() == 18


def test_four_rooms_second_vector_parts_top_right_from_bottom_left(four_rooms):
    v = eo.spectrum(eo.graph(four_rooms), k=2).vectors[:, 1]
    y, x = four_rooms.coords.T
    ends = [np.sign(v[(y < 6) & (x > 6)].sum()), np.sign(v[(y > 7) & (x < 6)].sum())]
    assert sorted(ends) == [-1, 1]


# Definitions ------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from(OPERATORS))
def test_laplacian_is_its_definition(seed, operator):
    W = random_graph(seed)
    L = eo.laplacian(W, operator)
    expected = reference.dense_laplacian(W, operator)
    np.testing.assert_allclose(L.toarray(), expected, rtol=0, atol=1e-12 * max(abs(expected).max(), 1))
    if operator != "random-walk":
        assert abs(L - L.T).nnz == 0


@given(st.integers(0, 10**6), st.sampled_from(OPERATORS), st.sampled_from(["dense", "sparse"]))
def test_all_eigenpairs_of_random_graphs(seed, operator, solver):
    W = random_graph(seed)
    sp = eo.spectrum(W, operator=operator, solver=solver)
    check(W, sp, lapack(W, operator))
    assert sp.n_zero == (sp.values == 0).sum()


@given(st.integers(0, 10**6), st.data())
def test_a_smaller_k_gives_the_first_columns_of_a_larger_one(seed, data):
    W = random_graph(seed, most=20)
    n = W.shape[0]
    k = data.draw(st.integers(1, n))
    solver = data.draw(st.sampled_from(["dense", "sparse"]))
    some, more = eo.spectrum(W, k, solver=solver), eo.spectrum(W, solver=solver)
    assert some.vectors.shape == (n, k)
    np.testing.assert_allclose(some.values, more.values[:k], rtol=0, atol=1e-12)
    assert close(some, more) < 1e-9 + 1e-14 / separation(more.values, n)


def test_zero_has_one_vector_a_component():
    """In order of their first states: the square root of the degree, or a constant, on each."""
    W = together(path(3), csr_array((1, 1)), star(4), csr_array((1, 1)))
    part = np.repeat([0, 1, 2, 3], [3, 1, 4, 1])
    shuffle = np.random.default_rng(0).permutation(9)
    W, part = csr_array(W[shuffle][:, shuffle]), part[shuffle]
    degree = np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1.0)
    ranked = sorted(range(4), key=lambda c: np.flatnonzero(part == c)[0])
    for operator, weight in (
        ("normalized", np.sqrt(degree)),
        ("combinatorial", np.ones(9)),
        ("random-walk", np.ones(9)),
    ):
        for solver in ("dense", "sparse"):
            for k in (1, 3, 4, 5, 9):
                sp = eo.spectrum(W, k, operator, solver=solver)
                assert sp.n_zero == min(4, k)
                assert (sp.values[: sp.n_zero] == 0).all()
                assert (sp.values[sp.n_zero :] > 0.1).all()
                for i, c in enumerate(ranked[:k]):
                    v = np.where(part == c, weight, 0.0)
                    np.testing.assert_allclose(sp.vectors[:, i], v / np.linalg.norm(v), atol=1e-15)


def test_random_walk_vectors_solve_the_generalised_problem(four_rooms):
    W = eo.graph(four_rooms)
    walk, normal = eo.spectrum(W, operator="random-walk"), eo.spectrum(W)
    np.testing.assert_array_equal(walk.values, normal.values)
    D = np.asarray(W.sum(axis=1)).ravel()
    gram = walk.vectors.T @ (D[:, None] * walk.vectors)
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-12)
    check(W, walk, lapack(W, "random-walk"))


# The parts --------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
def test_the_canonical_basis_depends_on_the_space_alone(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    m = int(rng.integers(1, n))
    rows = np.linalg.qr(rng.standard_normal((n, m)))[0].T
    turned = np.linalg.qr(rng.standard_normal((m, m)))[0] @ rows
    values = np.ones(m)
    a, b = (spectra.canonical_basis(values, x.T.copy())[0].T for x in (rows, turned))
    np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(a @ a.T, np.eye(m), atol=1e-12)
    np.testing.assert_allclose(a.T @ a, rows.T @ rows, atol=1e-12)  # the same space
    peak = np.abs(a[0]).argmax()
    reach = np.sqrt((rows**2).sum(axis=0))  # the largest entry a unit vector of this space can have
    assert a[0, peak] > 0
    assert a[0, peak] >= (1 - 1e-3) * reach.max()


def test_clusters_part_where_there_is_a_gap():
    assert spectra.clusters(np.zeros(0)) == []
    assert spectra.clusters(np.array([1.0])) == [(0, 1)]
    assert spectra.clusters(np.array([1e-9, 2e-9, 2e-9 + 1e-14])) == [(0, 1), (1, 3)]
    assert spectra.clusters(np.array([1.0, 1 + 1e-10, 1 + 2e-10, 1.1]) * 1e6, 1e6) == [(0, 3), (3, 4)]


# Notes and bad input ----------------------------------------------------------------------------------------


def test_a_graph_in_pieces_is_noted(caplog):
    caplog.set_level(logging.WARNING, "eigenoptions")
    eo.spectrum(path(5), 2)
    assert caplog.records == []
    eo.spectrum(together(path(3), path(2), csr_array((1, 1))), 2)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "3 components" in record.getMessage()
    assert "eigenvalue 0" in record.getMessage()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, ["k must be in 1..7 for 7 states, got 0"]),
        ({"k": 8}, ["k must be in 1..7 for 7 states, got 8"]),
        ({"k": -1}, ["k must be in 1..7", "got -1"]),
        ({"k": 2.5}, ["k must be in 1..7", "got 2.5"]),
        ({"k": "3"}, ["k must be in 1..7", "got '3'"]),
        (
            {"operator": "laplace"},
            ["operator must be one of normalized, combinatorial, random-walk", "'laplace'"],
        ),
        ({"solver": "arpack"}, ['solver must be "auto", "dense" or "sparse"', "'arpack'"]),
        ({"W": np.ones((2, 3))}, ["must be an (S, S) array", "(2, 3)"]),
        ({"W": np.zeros((0, 0))}, ["must be an (S, S) array", "(0, 0)"]),
        ({"W": [[0, 1], [1, 0]]}, ["must be an (S, S) array", "list"]),
        ({"W": np.array([[0.0, 1.0], [0.0, 0.0]])}, ["weights must be symmetric", "(W + W.T) / 2"]),
        ({"W": np.array([[0.0, -1.0], [-1.0, 0.0]])}, ["weights must be finite and not negative"]),
        ({"W": np.array([[0.0, np.nan], [np.nan, 0.0]])}, ["weights must be finite and not negative"]),
    ],
)
def test_what_is_refused(change, words):
    refused(ValueError, lambda: eo.spectrum(**{"W": path(7), **change}), *words)


def test_an_mdp_is_no_graph(corridor):
    refused(ValueError, lambda: eo.spectrum(corridor), "got MDP", "call graph(mdp) first")
    refused(ValueError, lambda: eo.laplacian(path(3), "none"), "operator must be one of", "'none'")


def test_more_than_can_be_held_is_refused():
    n = spectra.MAX_DENSE_STATES + 1
    for k in (None, n // 2):
        refused(
            ValueError,
            lambda k=k: eo.spectrum(path(n), k),
            f"{n} eigenvectors",
            "the limit is 20000",
            "fewer",
        )


# Showing itself ---------------------------------------------------------------------------------------------


def test_a_spectrum_shows_itself(i_maze):
    sp = eo.spectrum(eo.graph(i_maze), 6, coords=i_maze.coords)
    assert repr(sp).startswith("Spectrum(6 of dimension 19, normalized: 0, 0.0")
    assert repr(sp).endswith(", ...)")
    lines = str(sp).split("\n")
    assert lines[0] == "e1 0"
    assert lines[-1] == repr(sp)
    assert lines[2] == lines[16] == "█###█"  # the first vector is positive everywhere
    assert {lines[21], lines[35]} == {"█···█", "█###█"}  # the second has two ends
    page = sp._repr_html_()
    assert page.count("<svg") == 6
    assert "e6" in page
    bare = eo.spectrum(path(3), operator="combinatorial")
    assert str(bare) == repr(bare) == "Spectrum(3 of dimension 3, combinatorial: 0, 1, 3)"
    assert "<svg" not in bare._repr_html_()


# Accuracy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["tiling 4x4 of 6", "open room 30x30", "four copies", "long path", "barbell"]
)
def test_vectors_differ_by_less_than_their_accuracy(name):
    W, k = LARGE[name]
    dense, sparse = (eo.spectrum(W, k, solver=solver) for solver in ("dense", "sparse"))
    assert (np.abs(dense.vectors - sparse.vectors) <= dense.accuracy + sparse.accuracy).all()
    assert max(dense.accuracy.max(), sparse.accuracy.max()) < 1e-11
    assert close(dense, sparse) < 1e-12


def test_the_accuracy_holds_against_closed_forms():
    n = 300
    sp = eo.spectrum(path(n), operator="combinatorial")
    v = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n)
    v *= np.sign((v * sp.vectors).sum(axis=0)) / np.linalg.norm(v, axis=0)
    # The closed form itself is rounded.
    assert (np.abs(sp.vectors - v) <= sp.accuracy + 1e-13).all()
    assert sp.accuracy.max() < 1e-14


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_upper_end_of_a_cycle(operator):
    """Every state of a cycle is a peak of every pair of vectors: which one is chosen must not depend on noise."""
    W = cycle(600)
    whole = eo.spectrum(W, None, operator, solver="dense")
    for seed in range(3):
        assert close(eo.spectrum(W, None, operator, solver="sparse", rng=seed), whole) < 1e-9
        assert close(eo.spectrum(W, 199, operator, solver="sparse", rng=seed), whole) < 1e-9


def test_weights_of_too_wide_a_range_are_refused():
    W = np.array([[0, 0, 1e30], [0, 0, 1e-30], [1e30, 1e-30, 0]])
    refused(
        ValueError, lambda: eo.spectrum(W, operator="random-walk"), "range too widely", "narrow that range"
    )
    check(csr_array(W), eo.spectrum(W), lapack(csr_array(W), "normalized"))


def test_arrays_are_read_only_and_broken_sparse_arrays_are_refused(four_rooms):
    sp = eo.spectrum(eo.graph(four_rooms), 3, coords=four_rooms.coords)
    for array in (sp.values, sp.vectors, sp.coords, sp.accuracy):
        assert not array.flags.writeable
    broken = csr_array((np.ones(4), np.array([1, 0, 3, 2]), np.arange(5)), shape=(4, 4))
    broken.indices[3] = 10**8
    refused(ValueError, lambda: eo.spectrum(broken), "not a valid sparse array")
    refused(ValueError, lambda: eo.spectrum(np.array([[0, 1j], [1j, 0]])), "weights must be real numbers")


@pytest.mark.parametrize(
    ("values", "vectors"),
    [(np.zeros((2, 1)), np.eye(2)), (np.zeros(2), np.zeros(2)), (np.zeros(3), np.eye(2))],
)
def test_values_and_vectors_of_a_spectrum_fit(values, vectors):
    with pytest.raises(ValueError, match=r"values \(K,\) and vectors \(d, K\) must fit"):
        eo.Spectrum(values, vectors)


def hub_graph(cells: int, leaves: int) -> csr_array:
    """A bipartite graph: an open square, each second cell of which is joined to one hub, and so are some leaves."""
    W = eo.graph(eo.maze("\n".join(["." * cells] * cells)))
    row, column = np.divmod(np.arange(cells * cells), cells)
    first = np.flatnonzero((row + column) % 2)
    hub, n = cells * cells, cells * cells + 1 + leaves
    ends = np.concatenate([first, np.arange(hub + 1, n)])
    spokes = csr_array((np.full(len(ends), 0.01), (np.full(len(ends), hub), ends)), shape=(n, n))
    corner = csr_array((W.data, W.indices, np.append(W.indptr, np.full(n - hub, W.nnz))), shape=(n, n))
    return csr_array(corner + spokes + spokes.T)


def test_a_hub_is_not_eliminated():
    from eigenoptions.spectra.solvers import Laplacian

    def halved(W):
        W, degree, *rest = spectra._weights(W)
        return Laplacian(W, degree, 0.5, *rest).halved() is not None

    # The colour of the first state is eliminated; the hub has it in one of the two orders.
    hub = hub_graph(20, 40)
    assert halved(eo.graph(eo.maze("rooms:3x3")))
    assert not (halved(hub) and halved(hub[::-1, ::-1]))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_graph_with_a_hub_is_solved_both_ways_alike(reverse):
    W = hub_graph(20, 3)
    if reverse:
        W = csr_array(W[::-1, ::-1])
    dense, sparse = (eo.spectrum(W, 6, solver=solver) for solver in ("dense", "sparse"))
    np.testing.assert_allclose(sparse.values, dense.values, atol=1e-12)
    np.testing.assert_allclose(sparse.vectors, dense.vectors, atol=1e-9)
