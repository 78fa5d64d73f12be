"""Block Lanczos on small operators whose eigenvectors are known, to the last dimension; the elimination order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.test_spectra import complete, path, product, star

import eigenoptions as eo
from eigenoptions.spectra import lanczos as module
from eigenoptions.spectra.lanczos import elimination_order, lanczos


def operator(theta, seed, null=0):
    """A symmetric operator with eigenvalues `theta` and a null space: its eigenvectors (as rows), apply, project."""
    rng = np.random.default_rng(seed)
    n = len(theta) + null
    V = np.linalg.qr(rng.standard_normal((n, n)))[0].T
    rows, rest = V[: len(theta)], V[len(theta) :]

    def project(X):
        X -= rest.T @ (rest @ X)

    def apply(X):
        X[:] = rows.T @ (np.asarray(theta)[:, None] * (rows @ X))
        project(X)

    return rows, apply, project


def off(found, rows):
    """How far the space of `found` reaches out of the space of `rows`."""
    return np.abs(found - found @ rows.T @ rows).max()


@given(st.integers(0, 10**6), st.data())
def test_leading_vectors_of_any_operator(seed, data):
    """Also of one with few different eigenvalues, with a null space, with locked vectors, and up to all of it;
    with and without a look at the slowest vector before each test.
    """
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, 14))
    null = data.draw(st.integers(0, 4))
    if data.draw(st.booleans()):
        theta = np.sort(rng.uniform(0.1, 1.0, rank))[::-1]
    else:
        theta = np.sort(rng.choice([0.2, 0.5, 1.0], rank))[::-1]
    rows, apply, project = operator(theta, seed, null)
    taken = data.draw(st.integers(0, rank - 1))
    want = data.draw(st.integers(1, rank - taken))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GLANCE", data.draw(st.sampled_from([0, module.GLANCE])))
        found = lanczos(apply, project, rank, want, rows[:taken].copy(), np.random.default_rng(seed))
    assert found.shape == (want, rank + null)
    np.testing.assert_allclose(found @ found.T, np.eye(want), atol=1e-10)
    assert np.abs(found @ rows[:taken].T).max(initial=0.0) < 1e-10
    assert off(found, rows) < 1e-10  # nothing of the null space
    images = found.T.copy()
    apply(images)
    quotients = np.einsum("ij,ji->i", found, images)
    # each one is an eigenvector; one copy of a repeated eigenvalue may be missed, but no new value is made up
    np.testing.assert_allclose(images.T, quotients[:, None] * found, atol=1e-7)
    assert np.abs(quotients[:, None] - theta[None, taken:]).min(axis=1).max() < 1e-9
    assert (np.diff(quotients) <= 1e-9).all()
    if len(set(theta)) == rank:
        np.testing.assert_allclose(quotients, theta[taken : taken + want], atol=1e-9)


def leading(patch, glance, settled=None):
    """The 40 leading vectors of an operator of rank 300, and the sizes of the basis when all were computed."""
    rows, apply, project = operator(np.linspace(1.0, 1e-3, 300) ** 3, 1, null=2)
    sizes = []
    eigh = np.linalg.eigh
    patch.setattr(module, "GLANCE", glance)
    patch.setattr(np.linalg, "eigh", lambda T: sizes.append(len(T)) or eigh(T))
    if settled is not None:
        patch.setattr(module, "_settled", lambda *_: settled)
    found = lanczos(apply, project, 300, 40, np.zeros((0, 302)), np.random.default_rng(0))
    assert off(found, rows[:40]) < 1e-10
    return found, sizes


def test_a_look_at_the_slowest_vector_spares_tests_and_changes_nothing(monkeypatch):
    with monkeypatch.context() as patch:
        plain, often = leading(patch, 10**9)
    with monkeypatch.context() as patch:
        found, seldom = leading(patch, 0)
    assert found.tobytes() == plain.tobytes()
    assert seldom[-1] == often[-1]
    assert len(often) > 20
    assert len(seldom) < len(often) / 3


def test_the_look_is_only_a_guess(monkeypatch):
    """If it says yes at once, all tests are made; if it never does, the basis grows by a quarter at most."""
    with monkeypatch.context() as patch:
        plain, often = leading(patch, 10**9)
    with monkeypatch.context() as patch:
        found, sizes = leading(patch, 0, settled=True)
    assert found.tobytes() == plain.tobytes()
    assert sizes == often
    with monkeypatch.context() as patch:
        found, sizes = leading(patch, 0, settled=False)
    assert often[-1] <= sizes[-1] <= 1.25 * often[-1] + 4
    np.testing.assert_allclose(np.abs(np.sum(found * plain, axis=1)), 1.0, atol=1e-12)


def test_what_drowns_beside_a_huge_eigenvalue_is_left_for_the_next_call():
    theta = np.array([1e14, 3.0, 2.0, 1.0])
    rows, apply, project = operator(theta, 0, null=8)
    found = lanczos(apply, project, 4, 3, np.zeros((0, 12)), np.random.default_rng(0))
    assert len(found) == 1
    assert abs(abs(found[0] @ rows[0]) - 1.0) < 1e-12


def test_the_same_seed_gives_the_same_bytes():
    W = product(path(30), path(25))
    a, b = (eo.spectrum(W, 20, solver="sparse", rng=3) for _ in range(2))
    assert a.values.tobytes() == b.values.tobytes()
    assert a.vectors.tobytes() == b.vectors.tobytes()


@pytest.mark.parametrize(
    "W", [path(1), path(60), star(40), complete(12), product(path(9), path(9)), csr_array((5, 5))]
)
def test_the_elimination_order_is_a_permutation(W):
    order = elimination_order(eo.laplacian(W, "combinatorial"))
    assert sorted(order.tolist()) == list(range(W.shape[0]))


def test_the_elimination_order_keeps_a_tree_free_of_fill():
    """Leaves first: a star has no fill then, and all of it in reading order."""
    L = eo.laplacian(star(50), "combinatorial")
    order = elimination_order(L)
    assert 0 in order[-2:]  # the centre goes last, or next to last before one leaf
