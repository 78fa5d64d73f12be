"""Spectra: closed forms, the definition, one basis, no eigenvalue missed, bad input.

Every solver and seed gives the same basis.

All eigenvectors of a graph are computed densely, a few of more than 300 states by the
sparse solver: comparing the two compares the solvers.
"""

from __future__ import annotations

import logging
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.sparse import csr_array, csr_matrix, diags_array

import eigenoptions as eo
from eigenoptions.spectra.canonical import compute_canonical_basis, find_cluster_bounds
from eigenoptions.spectra.eigensolver import MIN_SPARSE_STATES, _count_below
from tests import reference
from tests.graphs import (
    complete,
    cycle,
    hypercube,
    linked,
    path,
    product,
    random_graph,
    random_maze,
    rooms,
    star,
    together,
)

OPERATORS = ["normalized", "combinatorial", "random-walk"]


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Warnings about components are tested where they are meant."""
    caplog.set_level(logging.ERROR, "eigenoptions")


def separation(values, k):
    """The smallest gap between different eigenvalues that the first k vectors feel."""
    gaps = np.diff(values)[: min(k, len(values) - 1)]
    scale = max(abs(values[-1]), 1e-300)
    return min([g for g in gaps / scale if g > 1e-9], default=1.0)


def distance(a, b):
    """Largest difference between eigenvectors of two spectra, as far as both go."""
    k = min(len(a.values), len(b.values))
    return float(np.abs(a.vectors[:, :k] - b.vectors[:, :k]).max())


def check_spectrum(W, sp, values):
    """Eigen-equation, unit columns, orthogonality, order, and eigenvalues `values`."""
    k = sp.vectors.shape[1]
    L = reference.dense_laplacian(W, sp.operator)
    norm = max(abs(L).max(), 1e-300)
    assert len(sp.values) == k
    assert (np.diff(sp.values) >= -1e-13 * norm).all()
    assert sp.values.min() >= 0
    assert_allclose(sp.values, values[:k], rtol=0, atol=2e-12 * norm)
    # Vectors of a cluster of nearly equal eigenvalues are mixed.
    assert_allclose(L @ sp.vectors, sp.vectors * sp.values, rtol=0, atol=3e-9 * norm)
    assert_allclose(np.linalg.norm(sp.vectors, axis=0), 1.0, atol=1e-12)
    if sp.operator != "random-walk":
        assert_allclose(sp.vectors.T @ sp.vectors, np.eye(k), atol=1e-10)


def lapack_values(W, operator):
    kind = "combinatorial" if operator == "combinatorial" else "normalized"
    return eigh(reference.dense_laplacian(W, kind), eigvals_only=True)


# Closed forms


def path_values(n):
    """Eigenvalues of the combinatorial Laplacian of a path."""
    return 2 - 2 * np.cos(np.pi * np.arange(n) / n)


def path_vectors(n, k):
    """Eigenvectors of a path's combinatorial Laplacian: cosines, canonical signs."""
    V = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(k)) / n)
    peak = np.argmax(np.abs(V) > (1 - 1e-9) * np.abs(V).max(axis=0), axis=0)
    return V * np.sign(V[peak, np.arange(k)]) / np.linalg.norm(V, axis=0)


CYCLE_8 = 1 - np.cos(2 * np.pi * np.arange(8) / 8)


@pytest.mark.parametrize(
    ("W", "operator", "values"),
    [
        (path(40), "combinatorial", path_values(40)),
        (path(40), "normalized", 1 - np.cos(np.pi * np.arange(40) / 39)),
        (path(40), "random-walk", 1 - np.cos(np.pi * np.arange(40) / 39)),
        (cycle(31), "normalized", np.sort(1 - np.cos(2 * np.pi * np.arange(31) / 31))),
        (complete(20), "normalized", [0, *[20 / 19] * 19]),
        (star(25), "combinatorial", [0, *[1] * 23, 25]),
        (star(25), "normalized", [0, *[1] * 23, 2]),
        (
            hypercube(7),
            "normalized",
            np.sort([2.0 * bin(i).count("1") / 7 for i in range(128)]),
        ),
        (
            product(path(9), path(7)),
            "combinatorial",
            np.sort(np.add.outer(path_values(9), path_values(7)).ravel()),
        ),
        (
            product(cycle(8), cycle(8)),
            "normalized",
            np.sort(np.add.outer(CYCLE_8, CYCLE_8).ravel()) / 2,
        ),
        (
            together(complete(5), complete(5), csr_array((2, 2))),
            "combinatorial",
            [0] * 4 + [5] * 8,
        ),
    ],
)
def test_spectrum_of_known_graph_is_its_closed_form(W, operator, values):
    sp = eo.spectrum(W, operator=operator)
    assert_allclose(sp.values, values, rtol=0, atol=1e-12)
    check_spectrum(W, sp, np.asarray(values, dtype=float))


@pytest.mark.parametrize(("n", "k"), [(30, 30), (3000, 60)])
def test_spectrum_of_path_has_cosines(n, k):
    sp = eo.spectrum(path(n), k, operator="combinatorial")
    assert_allclose(sp.values, path_values(n)[:k], rtol=1e-9, atol=1e-15)
    assert_allclose(sp.vectors, path_vectors(n, k), rtol=0, atol=2e-13)


def test_spectrum_of_open_room_runs_along_diagonals(open_room):
    sp = eo.spectrum(eo.graph(open_room), k=3)
    first, second = (sp.vectors[:, i].reshape(10, 10) for i in (1, 2))
    assert_allclose(first, first.T, atol=1e-12)
    assert_allclose(second, second[::-1, ::-1].T, atol=1e-12)
    # Next to the corners: vectors of this operator are proportional to the root of the
    # degree.
    assert first.argmax() == 11
    assert second.argmax() == 18


# Definitions


@given(st.integers(0, 10**6), st.sampled_from(OPERATORS))
def test_laplacian_is_its_definition(seed, operator):
    W = random_graph(seed)
    L = eo.laplacian(W, operator)
    expected = reference.dense_laplacian(W, operator)
    assert_allclose(
        L.toarray(), expected, rtol=0, atol=1e-12 * max(abs(expected).max(), 1)
    )
    if operator != "random-walk":
        assert abs(L - L.T).nnz == 0


@given(st.integers(0, 10**6), st.sampled_from(OPERATORS))
def test_spectrum_of_random_graph_is_complete(seed, operator):
    W = random_graph(seed)
    sp = eo.spectrum(W, operator=operator)
    check_spectrum(W, sp, lapack_values(W, operator))
    assert sp.n_zero == (sp.values == 0).sum()


def test_spectrum_of_components_has_one_null_vector_each():
    """The root of the degree, or a constant, on each piece, ordered by first states."""
    W = together(path(3), csr_array((1, 1)), star(4), csr_array((1, 1)))
    component = np.repeat([0, 1, 2, 3], [3, 1, 4, 1])
    order = np.random.default_rng(0).permutation(9)
    W = csr_array(W[order][:, order])
    component = component[order]
    degree = np.maximum(W.sum(axis=1), 1.0)
    ranked = list(dict.fromkeys(component.tolist()))
    for operator in OPERATORS:
        weight = np.sqrt(degree) if operator == "normalized" else np.ones(9)
        for k in (1, 3, 4, 5, 9):
            sp = eo.spectrum(W, k, operator)
            assert sp.n_zero == min(4, k)
            assert (sp.values[: sp.n_zero] == 0).all()
            assert (sp.values[sp.n_zero :] > 0.1).all()
            for i, c in enumerate(ranked[:k]):
                v = np.where(component == c, weight, 0.0)
                assert_allclose(sp.vectors[:, i], v / np.linalg.norm(v), atol=1e-15)


def test_spectrum_of_successor_inverts_the_discounted_walk(four_rooms):
    W = eo.graph(four_rooms)
    P = W.toarray() / W.sum(axis=1)[:, None]
    for gamma in (0.5, 0.99):
        sp = eo.spectrum(W, 6, operator="successor", gamma=gamma)
        psi = np.linalg.inv(np.eye(104) - gamma * P)
        assert_allclose(psi @ sp.vectors, sp.vectors * sp.values, atol=1e-11)
        assert_allclose(sp.values, np.sort(np.linalg.eigvals(psi).real)[::-1][:6])
        of_walk = eo.spectrum(W, 6, operator="random-walk")
        assert_allclose(sp.vectors, of_walk.vectors, rtol=0, atol=1e-12)


# The canonical basis


@given(st.integers(0, 10**6))
def test_canonical_basis_of_rotated_space_is_the_same(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    bounds = np.unique([0, *rng.integers(1, n, 3), n])
    values = np.repeat(np.arange(len(bounds) - 1.0), np.diff(bounds))
    rows = np.linalg.qr(rng.standard_normal((n, n)))[0]
    expected = np.concatenate(
        [reference.canonical(rows[a:b]) for a, b in pairwise(bounds)]
    ).T
    for low, high in pairwise(bounds):
        rows[low:high] = (
            np.linalg.qr(rng.standard_normal((high - low, high - low)))[0]
            @ rows[low:high]
        )
    assert_allclose(compute_canonical_basis(values, rows.T), expected, atol=1e-8)


def test_cluster_bounds_separate_where_there_is_a_gap():
    assert find_cluster_bounds(np.zeros(0)).tolist() == [0]
    assert find_cluster_bounds(np.array([1.0])).tolist() == [0, 1]
    assert find_cluster_bounds(np.array([1e-9, 2e-9, 2e-9 + 1e-14])).tolist() == [
        0,
        1,
        3,
    ]
    assert find_cluster_bounds(
        np.array([1.0, 1 + 1e-10, 1 + 2e-10, 1.1]) * 1e6, 1e6
    ).tolist() == [0, 3, 4]


# Dense and sparse solver, seeds

# Graphs with many equal eigenvalues, and how many eigenvectors are asked for.
LARGE = {
    "tiling 4x4 of 6": (rooms(4, 4, 6), 40),
    "tiling 5x5 of 5": (rooms(5, 5, 5), 64),
    "tiling 8x8 of 3": (rooms(8, 8, 3), 32),
    "open room 24x24": (product(path(24), path(24)), 33),
    "torus 20x20": (product(cycle(20), cycle(20)), 30),
    "hypercube 9": (hypercube(9), 15),
    "three copies": (together(*[rooms(2, 3, 5)] * 3), 40),
    "copies and lone states": (
        together(csr_array((3, 3)), *[path(40)] * 9, csr_array((200, 200))),
        240,
    ),
    "star": (star(400), 3),
    "complete": (complete(310), 3),
    "random maze": (random_maze(3, 26, 26, 0.25), 40),
    "long path": (path(800), 40),
    "barbell": (linked(linked(complete(20), path(400), 1.0), complete(20), 1.0), 12),
}


@pytest.mark.parametrize("operator", ["normalized", "combinatorial"])
@pytest.mark.parametrize("name", LARGE)
def test_spectrum_by_any_solver_and_seed_has_the_same_vectors(name, operator):
    W, k = LARGE[name]
    assert W.shape[0] > MIN_SPARSE_STATES
    dense = eo.spectrum(W, operator=operator)
    first = eo.spectrum(W, k, operator, rng=0)
    second = eo.spectrum(W, k, operator, rng=1)
    assert_allclose(
        first.values, dense.values[:k], rtol=0, atol=1e-13 * dense.values[-1]
    )
    assert max(distance(first, second), distance(first, dense)) < 1e-11
    assert distance(eo.spectrum(W, k - 1, operator), first) < 1e-11


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(OPERATORS), st.integers(1, 20))
def test_spectrum_of_random_maze_by_both_solvers_is_the_same(seed, operator, k):
    W = random_maze(seed, 24, 24)
    dense = eo.spectrum(W, operator=operator)
    sparse = eo.spectrum(W, k, operator, rng=seed + 1)
    assert_allclose(sparse.values, dense.values[:k], rtol=0, atol=1e-12)
    assert distance(sparse, dense) < 1e-9


@given(st.integers(0, 10**6), st.data())
def test_spectrum_with_smaller_k_has_the_first_columns(seed, data):
    W = random_graph(seed, most=20)
    k = data.draw(st.integers(1, W.shape[0]))
    some = eo.spectrum(W, k)
    full = eo.spectrum(W)
    assert some.vectors.shape == (W.shape[0], k)
    assert distance(some, full) < 1e-9 + 1e-14 / separation(full.values, W.shape[0])


@pytest.mark.parametrize(
    "W", [rooms(5, 5, 3), together(rooms(4, 4, 3), rooms(4, 4, 3))]
)
@pytest.mark.parametrize("operator", OPERATORS)
def test_spectrum_of_nearly_equal_eigenvalues_keeps_its_basis(W, operator):
    """Rooms that hardly feel each other have eigenvalues 1e-8 apart."""
    dense = eo.spectrum(W, operator=operator)
    for seed in range(2):
        assert (
            distance(eo.spectrum(W, W.shape[0] // 4, operator, rng=seed), dense) < 1e-9
        )


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_spectrum_of_scaled_weights_has_the_same_vectors(scale):
    for W in (
        rooms(4, 4, 5),
        random_maze(1),
        together(path(9), star(9), csr_array((2, 2))),
    ):
        for operator in OPERATORS:
            k = min(40, W.shape[0])
            plain = eo.spectrum(W, k, operator)
            scaled = eo.spectrum(csr_array(W * scale), k, operator)
            factor = scale if operator == "combinatorial" else 1.0
            assert_allclose(
                scaled.values, plain.values * factor, rtol=0, atol=1e-12 * factor
            )
            assert distance(scaled, plain) < 1e-9


@pytest.mark.parametrize("weight", [1e-10, 1e-14, 1e-20, 1e-40])
@pytest.mark.parametrize("operator", ["normalized", "combinatorial"])
def test_spectrum_with_a_very_weak_link_is_exact(weight, operator):
    grid = product(path(14), path(13))
    W = linked(grid, grid, weight)
    sp = eo.spectrum(W, 8, operator)
    assert sp.n_zero == 1
    assert 0 <= sp.values[1] < 10 * weight + 1e-14
    check_spectrum(W, sp, lapack_values(W, operator))
    assert distance(sp, eo.spectrum(W, operator=operator)) < 1e-9
    first, second = np.split(np.sign(sp.vectors[:, 1]), 2)
    assert (first == first[0]).all()
    assert (second == -first[0]).all()


def test_spectrum_of_relabelled_states_is_permuted():
    """With generic weights no entries are equal: no sign depends on the numbering."""
    rng = np.random.default_rng(5)
    W = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.2), 1) + np.diag(
        rng.random(29), 1
    )
    W = csr_array(W + W.T)
    order = rng.permutation(30)
    a = eo.spectrum(W, 12)
    b = eo.spectrum(csr_array(W[order][:, order]), 12)
    assert_allclose(a.values, b.values, atol=1e-13)
    assert_allclose(a.vectors[order], b.vectors, atol=1e-12)


# Input


def test_spectrum_of_any_array_format_is_the_same():
    W = random_maze(0)
    coo = W.tocoo()
    halves = (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2)))
    zero = (
        np.append(coo.data, [0.0, 0.0]),
        (np.append(coo.row, [0, 9]), np.append(coo.col, [9, 0])),
    )
    long = csr_array(
        (W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64)), shape=W.shape
    )
    formats = [
        W.toarray(),
        csr_matrix(W),
        W.tocsc(),
        coo,
        long,
        csr_array(W.astype(np.float32)),
    ]
    formats += [csr_array(entries, shape=W.shape) for entries in (halves, zero)]
    expected = eo.spectrum(W, 10)
    for other in formats:
        assert_allclose(eo.spectrum(other, 10).vectors, expected.vectors, atol=1e-12)
    # A loop changes nothing where degrees do not matter.
    loops = csr_array(W + diags_array(np.ones(W.shape[0])))
    combinatorial = eo.spectrum(W, 10, "combinatorial")
    assert_allclose(
        eo.spectrum(loops, 10, "combinatorial").vectors,
        combinatorial.vectors,
        atol=1e-12,
    )


@pytest.mark.parametrize("operator", [*OPERATORS, "successor"])
@pytest.mark.parametrize("decades", [2, 6, 30, 100])
def test_spectrum_of_wide_weights_is_verified_or_refused(operator, decades):
    rng = np.random.default_rng(decades)
    n_refused = 0
    for n in rng.integers(3, 30, 8):
        W = np.triu(
            10.0 ** rng.uniform(-decades, decades, (n, n)) * (rng.random((n, n)) < 0.5),
            1,
        )
        W = csr_array(W + W.T)
        try:
            sp = eo.spectrum(W, None, operator)
        except ValueError as error:
            n_refused += "weights range too widely" in str(error)
            continue
        values = (
            1.0 - (1.0 - 1.0 / sp.values) / 0.99
            if operator == "successor"
            else sp.values
        )
        L = eo.laplacian(
            W, "random-walk" if operator == "successor" else operator
        ).toarray()
        assert (
            np.abs(L @ sp.vectors - sp.vectors * values).max() <= 2e-8 * np.abs(L).max()
        )
    assert n_refused == 0 or (decades > 6 and operator in ("random-walk", "successor"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"k": 0}, "1..7"),
        ({"k": 8}, "1..7"),
        ({"k": 2.5}, "1..7"),
        ({"operator": "laplace"}, "operator"),
        ({"gamma": 1.0}, "gamma"),
        ({"rng": -1}, "rng"),
        ({"W": np.ones((2, 3))}, "shape"),
        ({"W": np.zeros((0, 0))}, "shape"),
        ({"W": [0, 1]}, "list"),
        ({"W": eo.maze("...")}, "graph"),
        ({"W": np.array([[0.0, 1.0], [0.0, 0.0]])}, "symmetric"),
        (
            {
                "W": np.array(
                    [[0.0, 1e308, 1e308], [1e308, 0.0, 0.0], [1e308, 0.0, 0.0]]
                )
            },
            "finite",
        ),
    ],
)
def test_spectrum_of_bad_input_raises(change, word):
    with pytest.raises(ValueError, match=word):
        eo.spectrum(**{"W": path(7), **change})


def test_laplacian_of_representation_raises():
    with pytest.raises(ValueError, match="operator"):
        eo.laplacian(path(3), "successor")


def test_spectrum_beyond_the_dense_limit_raises():
    n = 20_000
    for k in (None, n // 2):
        with pytest.raises(ValueError, match="GB"):
            eo.spectrum(path(n), k)


def test_spectrum_of_several_components_warns(caplog):
    caplog.set_level(logging.WARNING, "eigenoptions")
    eo.spectrum(path(5), 2)
    assert caplog.records == []
    eo.spectrum(together(path(3), path(2), csr_array((1, 1))), 2)
    assert "3 components" in caplog.text


# The record


def test_spectrum_record_is_read_only_and_short():
    sp = eo.spectrum(path(9), 6, "combinatorial")
    assert not sp.values.flags.writeable
    assert not sp.vectors.flags.writeable
    assert (
        repr(sp)
        == "Spectrum(6 of dimension 9, combinatorial: 0, 0.1206, 0.4679, 1, 1.653, ...)"
    )


def random_weights(seed, n=12):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1) + np.diag(
        np.ones(n - 1), 1
    )
    return csr_array(W + W.T)


def test_embedding_by_commute_time_is_the_time_there_and_back():
    W = random_weights(3)
    degree = W.sum(axis=1)
    n = len(degree)
    P = W.toarray() / degree[:, None]
    rows = eo.spectrum(W, operator="combinatorial").embedding("commute")
    hitting = np.zeros((n, n))
    for goal in range(n):
        others = np.arange(n) != goal
        hitting[others, goal] = np.linalg.solve(
            np.eye(n - 1) - P[others][:, others], np.ones(n - 1)
        )
    square = ((rows[:, None] - rows[None]) ** 2).sum(axis=2) * degree.sum()
    assert_allclose(square, hitting + hitting.T, atol=1e-9)


def test_embedding_by_diffusion_is_the_distance_of_walks():
    W = random_weights(4)
    degree = W.sum(axis=1)
    rows = eo.spectrum(W).embedding("diffusion", t=3) / np.sqrt(degree)[:, None]
    after = np.linalg.matrix_power(W.toarray() / degree[:, None], 3)
    square = ((after[:, None] - after[None]) ** 2 / degree).sum(axis=2)
    assert_allclose(((rows[:, None] - rows[None]) ** 2).sum(axis=2), square, atol=1e-9)


def test_embedding_of_bad_input_raises():
    sp = eo.spectrum(path(5))
    with pytest.raises(ValueError, match="scale"):
        sp.embedding("log")
    with pytest.raises(ValueError, match="t must"):
        sp.embedding("diffusion", t=-1)
    with pytest.raises(ValueError, match="random-walk"):
        eo.spectrum(path(5), operator="successor").embedding()


@pytest.mark.parametrize(("largest", "count"), [(3.0, 1), (1e17, None)])
def test_pivots_count_unless_rounding_hides_their_sign(
    largest: float, count: int | None
) -> None:
    L = csr_array(np.diag([0.0, 1.0, largest]))
    assert _count_below(L, 0.0, 1.0) == count
