"""The incidence matrix as a stream: Lemma 5.1, Theorem 5.1, and the same answer however the stream is cut."""

from __future__ import annotations

import itertools
import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

import eigenoptions as eo
from eigenoptions.features import Bits, Fourier, OneHot, Tiles
from eigenoptions.spectra import laplacian
from eigenoptions.spectra.gram import Gram, load_gram
from eigenoptions.spectra.rows import BITS, NUMBERS, SPARSE, STATES, UniqueRows, decode, difference, encode
from tests.reference import incidence


def every_transition(mdp: eo.MDP) -> tuple[np.ndarray, np.ndarray]:
    table = mdp.transition.tocoo()
    return table.row // mdp.n_actions, table.col


def drawn(rng: np.random.Generator, kind: str, n: int, d: int) -> tuple:
    """Two sides of n transitions, with many repeats and some that change nothing."""
    if kind == STATES:
        return rng.integers(d, size=n), rng.integers(d, size=n)
    if kind == BITS:
        few = rng.random((5, d)) < 0.5
        return few[rng.integers(5, size=n)], few[rng.integers(5, size=n)]
    few = rng.standard_normal((5, d)) * (rng.random((5, d)) < 0.5)
    pair = few[rng.integers(5, size=n)], few[rng.integers(5, size=n)]
    return tuple(map(csr_array, pair)) if kind == SPARSE else pair


def dense(phi, d: int) -> np.ndarray:
    if issparse(phi):
        return phi.toarray()
    return np.eye(d)[phi] if phi.ndim == 1 else phi


def full(matrix) -> np.ndarray:
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)


KINDS = [STATES, BITS, NUMBERS, SPARSE]


def test_lemma_51_every_transition_once_gives_twice_the_laplacian(domain: eo.MDP) -> None:
    gram = Gram(domain.n_states)
    gram.add(*every_transition(domain))
    L = laplacian(eo.graph(domain), "combinatorial")
    assert issparse(gram.matrix)
    assert np.array_equal(gram.matrix.toarray(), 2 * L.toarray())


def test_theorem_51_the_right_singular_vectors_of_t_are_the_eigenvectors_of_l(domain: eo.MDP) -> None:
    s, t = every_transition(domain)
    gram = Gram(domain.n_states)
    gram.add(s, t)
    ours = gram.spectrum()
    exact = eo.spectrum(eo.graph(domain), operator="combinatorial")
    assert ours.operator == "incidence"
    assert ours.n_zero == 1
    np.testing.assert_allclose(ours.values, exact.values, atol=1e-12)
    np.testing.assert_array_equal(ours.vectors, exact.vectors)
    # And the recipe of the paper: the SVD of T itself.
    T = incidence(np.eye(domain.n_states)[s], np.eye(domain.n_states)[t])
    sigma = np.linalg.svd(T, compute_uv=False)
    np.testing.assert_allclose(np.sort(sigma**2 / 2)[-len(ours.values) + 1 :], ours.values[1:], atol=1e-10)
    np.testing.assert_allclose(T.T @ T @ ours.vectors, 2 * ours.vectors * ours.values, atol=1e-10)


def test_dense_one_hot_features_give_the_same_spectrum_as_state_numbers(domain: eo.MDP) -> None:
    s, t = every_transition(domain)
    hot = OneHot(domain.n_states)
    exact = Gram()
    exact.add(s, t)
    for phi in (hot(s), hot(s).toarray(), hot(s).toarray().astype(bool)):
        gram = Gram()
        gram.add(phi, hot(t) if issparse(phi) else hot(t).toarray().astype(phi.dtype))
        assert np.array_equal(full(gram.matrix), exact.matrix.toarray())
        found, wanted = gram.spectrum(), exact.spectrum()
        assert found.n_zero == wanted.n_zero == 1
        np.testing.assert_allclose(found.values, wanted.values, atol=1e-12)
        np.testing.assert_allclose(found.vectors, wanted.vectors, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dedupe", [True, False])
def test_the_stream_is_the_papers_matrix(kind: str, dedupe: bool, rng: np.random.Generator) -> None:
    d = 70  # more than a word of bits
    before, after = drawn(rng, kind, 200, d)
    T = incidence(dense(before, d), dense(after, d), dedupe=dedupe)
    gram = Gram(d, dedupe=dedupe)
    cuts = [0, 1, 60, 60, 200]
    for low, high in itertools.pairwise(cuts):
        gram.add(before[low:high], after[low:high])
    np.testing.assert_allclose(full(gram.matrix), T.T @ T, atol=1e-10)
    assert gram.n_transitions == 200
    if dedupe:
        assert len(gram) == len(T)
        assert gram.add(before, after) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dedupe", [True, False])
def test_two_streams_merge_to_the_same_bytes_as_one(
    kind: str, dedupe: bool, rng: np.random.Generator
) -> None:
    d = 33
    before, after = drawn(rng, kind, 300, d)
    if not dedupe and kind in (NUMBERS, SPARSE):  # sums of whole numbers are exact; of others up to rounding
        before, after = (np.round(4 * x) if kind == NUMBERS else (4 * x).rint() for x in (before, after))
    order = rng.permutation(300)
    one, left, right = (Gram(d, dedupe=dedupe) for _ in range(3))
    one.add(before, after)
    left.add(before[order[:100]], after[order[:100]])
    right.add(before[order[100:]], after[order[100:]])
    for merged in (left.merge(right), right.merge(left), Gram(d, dedupe=dedupe).merge(one)):
        assert np.array_equal(full(merged.matrix), full(one.matrix))
        assert np.array_equal(merged.spectrum(5).vectors, one.spectrum(5).vectors)
        assert (len(merged), merged.n_transitions) == (len(one), one.n_transitions)
    assert left.n_transitions == 100, "merging leaves both as they were"


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=60))
def test_the_set_is_exact(rows: list[list[int]]) -> None:
    known: dict[tuple[int, ...], int] = {}
    wanted = [known.setdefault(tuple(row), len(known)) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    words = np.array([w for row in rows for w in row], dtype=np.uint64)
    ours = UniqueRows()
    assert ours.insert(indptr, words).tolist() == wanted
    assert ours.count == len(known)
    kept = [tuple(ours.words[a:b].tolist()) for a, b in zip(ours.indptr[:-1], ours.indptr[1:], strict=True)]
    assert kept == list(known)


def test_the_set_tells_rows_apart_whose_hashes_collide() -> None:
    """Rows of one and of two words made to have one hash: the second word undoes what the first one mixed."""
    from eigenoptions._kernels.walking import GOLDEN, mix

    first = np.arange(50, dtype=np.uint64)
    start = np.array([mix(GOLDEN ^ w) for w in first], dtype=np.uint64)
    rows = [[int(w), int(x ^ start[0])] for w, x in zip(first, start, strict=True)]
    hashes = {int(mix(mix(GOLDEN ^ np.uint64(a)) ^ np.uint64(b))) for a, b in rows}
    rows.append([int(GOLDEN ^ start[0])])
    assert hashes == {int(mix(GOLDEN ^ np.uint64(rows[-1][0])))}
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    words = np.array([w for row in rows for w in row], dtype=np.uint64)
    for order in (list(range(51)), [50, *range(50)]):  # the single word last, and first
        at = np.concatenate([[0], np.cumsum([len(rows[i]) for i in order])])
        ours = UniqueRows()
        assert ours.insert(at, np.array([w for i in order for w in rows[i]], dtype=np.uint64)).tolist() == [
            *range(51)
        ]
    ours = UniqueRows()
    assert ours.insert(indptr, words).tolist() == ours.insert(indptr, words).tolist() == list(range(51))


def test_pairs_of_states_are_rows_like_others(rng: np.random.Generator) -> None:
    before, after = rng.integers(300, size=(2, 20_000))
    fast, plain = UniqueRows(), UniqueRows()
    for low in range(0, 20_000, 7_000):
        part = slice(low, low + 7_000)
        fast.insert_pairs(before[part], after[part])
        plain.insert(*encode(STATES, before[part], after[part]))
    assert np.array_equal(fast.words, plain.words)
    assert np.array_equal(fast.indptr, plain.indptr)


def test_a_copy_of_a_set_goes_on_like_the_set(rng: np.random.Generator) -> None:
    rows = UniqueRows()
    rows.insert(np.arange(1001), rng.integers(200, size=1000).astype(np.uint64))
    for made in (pickle.loads(pickle.dumps(rows)), deepcopy(pickle.loads(pickle.dumps(UniqueRows())))):
        known = made.count
        words = np.concatenate([rows.words, np.array([999], dtype=np.uint64)])
        slots = made.insert(np.arange(len(words) + 1), words)
        assert slots.tolist() == list(range(len(words)))
        assert made.count == rows.count + 1
        assert known in (0, rows.count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 8, 64, 65, 130])
def test_words_are_differences_again(kind: str, d: int, rng: np.random.Generator) -> None:
    before, after = drawn(rng, kind, 40, d)
    back = full(decode(kind, *encode(kind, before, after), d))
    wanted = dense(after, d).astype(float) - dense(before, d).astype(float)
    assert np.array_equal(back, wanted[wanted.any(axis=1)])
    if kind != STATES:
        assert np.array_equal(full(difference(kind, before, after)), wanted)


def test_minus_zero_is_zero() -> None:
    gram = Gram()
    assert gram.add(np.array([[0.0, 1.0]]), np.array([[-0.0, 2.0]])) == 1
    assert gram.add(np.array([[-0.0, 1.0]]), np.array([[0.0, 2.0]])) == 0


def test_memory_does_not_grow_once_the_set_is_complete(four_rooms: eo.MDP, rng: np.random.Generator) -> None:
    for dedupe in (True, False):
        gram = Gram(four_rooms.n_states, dedupe=dedupe)
        gram.add(*every_transition(four_rooms))
        before = gram.nbytes
        s = rng.integers(four_rooms.n_states, size=50_000)
        gram.add(s, four_rooms.successors[s, rng.integers(4, size=50_000)])
        assert gram.nbytes == before
    bits = Gram(dedupe=False)
    for _ in range(3):
        bits.add(rng.random((5000, 64)) < 0.5, rng.random((5000, 64)) < 0.5)
        assert bits.nbytes < 8 * 64 * 64 + 2000


def test_large_one_hot_streams_stay_sparse_and_use_the_sparse_solver() -> None:
    n = 20_000  # a dense matrix would take 3.2 GB
    gram = Gram(n)
    here = np.arange(n - 1)
    gram.add(np.concatenate([here, here + 1]), np.concatenate([here + 1, here]))
    values = gram.spectrum(4).values
    np.testing.assert_allclose(values, 2 - 2 * np.cos(np.pi * np.arange(4) / n), rtol=1e-6, atol=1e-14)


def test_states_never_seen_take_no_part() -> None:
    gram = Gram(10)
    gram.add([3, 4, 4, 7], [4, 3, 7, 4])
    sp = gram.spectrum()
    assert (sp.vectors.shape, sp.n_zero) == ((10, 3), 1)
    assert np.flatnonzero(sp.vectors.any(axis=1)).tolist() == [3, 4, 7]
    np.testing.assert_allclose(sp.values, [0, 1, 3], atol=1e-14)


def test_rank_and_null_space_are_told_apart(rng: np.random.Generator) -> None:
    inner = rng.standard_normal((500, 4))
    phi = inner @ rng.standard_normal((4, 9))  # nine features of rank four, and one that never changes
    phi = np.column_stack([phi, np.ones(500)])
    gram = Gram()
    gram.add(phi[:-1], phi[1:])
    sp = gram.spectrum()
    assert (len(sp.values), sp.n_zero) == (9, 5)
    assert (sp.values[5:] > 1e-3).all()
    D = np.diff(phi, axis=0)
    np.testing.assert_allclose(D @ sp.vectors[:, :5], 0, atol=1e-9)
    np.testing.assert_allclose(
        (D @ sp.vectors[:, 5:]).T @ (D @ sp.vectors[:, 5:]) / 2, np.diag(sp.values[5:]), atol=1e-8
    )
    assert [p.label for p in eo.eigenpurposes(sp)][:2] == ["e6+", "e6-"]
    assert gram.spectrum(7).values.tolist() == sp.values[:7].tolist()


def test_bits_of_the_atari_size_are_exact(rng: np.random.Generator) -> None:
    ram = rng.integers(0, 4, size=(6000, 128), dtype=np.uint8)
    gram = Gram(features=Bits())
    gram.add(ram[:-1], ram[1:])
    assert (gram.kind, len(gram), gram.n_features) == (BITS, 5999, 1024)
    assert gram._rows.words.nbytes == 5999 * 256
    D = np.diff(Bits()(ram).astype(float), axis=0)
    assert np.array_equal(gram.matrix, D.T @ D)
    few = gram.sample(1000, rng=1)
    assert len(few) == 1000
    assert few.merge(gram).matrix.tolist() == gram.matrix.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dedupe", [True, False])
def test_a_stream_goes_on_from_a_file(
    kind: str, dedupe: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    before, after = drawn(rng, kind, 100, 20)
    whole, part = Gram(dedupe=dedupe), Gram(dedupe=dedupe)
    for low in (0, 50):
        whole.add(before[low : low + 50], after[low : low + 50])
    part.add(before[:50], after[:50])
    part.save(tmp_path / "gram.safetensors")
    again = load_gram(tmp_path / "gram.safetensors")
    again.add(before[50:], after[50:])
    assert np.array_equal(full(again.matrix), full(whole.matrix))
    assert repr(again) == repr(whole)
    assert again.n_transitions == 100


def test_the_feature_map_is_kept_in_the_file(tmp_path: Path, rng: np.random.Generator) -> None:
    unit = (0.0, 0.0), (1.0, 1.0)
    for phi in (Fourier(*unit), Tiles(*unit, size=64)):
        gram = Gram(features=phi)
        x = rng.random((30, 2))
        gram.add(x[:-1], x[1:])
        gram.save(tmp_path / "gram.safetensors")
        assert load_gram(tmp_path / "gram.safetensors").features == phi
        assert gram.spectrum(2).features is phi
    gram = Gram(features=np.atleast_2d)
    gram.save(tmp_path / "gram.safetensors")
    with pytest.raises(
        ValueError, match=r"the features are the function numpy.atleast_2d, .* pass features="
    ):
        load_gram(tmp_path / "gram.safetensors")
    assert load_gram(tmp_path / "gram.safetensors", features=np.atleast_2d).features is np.atleast_2d


def test_bad_input_is_refused_and_nothing_is_lost() -> None:
    gram = Gram(4)
    gram.add([0, 1], [1, 2])
    nan = np.array([[np.nan, 1.0]])
    for before, after, complaint in (
        ([0, 9], [1, 1], "states must be in 0..3, got 9"),
        ([-1], [1], "states must be in 0..2147483647, got -1"),
        ([0.5], [1.0], "must be state numbers, got float64"),
        ([0, 1], [1], r"one shape, got \(2,\) and \(1,\)"),
        (np.eye(4), np.eye(4), "holds differences of states, got numbers"),
        (np.eye(3), np.eye(3), "there must be 4 features, got 3"),
    ):
        with pytest.raises(ValueError, match=complaint):
            gram.add(before, after)
    assert (len(gram), gram.n_transitions) == (2, 2)
    for stream, call, complaint in (
        (Gram(), lambda g: g.add(nan, nan), "features must be finite, got nan"),
        (Gram(features=np.atleast_3d), lambda g: g.add(np.eye(2), np.eye(2)), r"features must give \(2, d\)"),
        (Gram(), lambda g: g.spectrum(), "no transition has changed a feature yet"),
        (Gram(), lambda g: g.matrix, "the stream is empty"),
        (gram, lambda g: g.spectrum(9), "k must be in 1..3, the features that ever changed, got 9"),
        (gram, lambda g: g.sample(5), "n must be in 0..2, the differences there are, got 5"),
        (gram, lambda g: g.merge(Gram(5)), "cannot be merged: 4 and 5 features"),
        (gram, lambda g: g.merge(Gram(4, dedupe=False)), "were not made alike"),
        (gram, lambda g: g.merge(Gram(4, features=OneHot(4))), "different features"),
        (
            Gram(features=OneHot(3)),
            lambda g: g.add(np.eye(3), np.eye(3)),
            "one-hot features need state numbers",
        ),
    ):
        with pytest.raises(ValueError, match=complaint):
            call(stream)
    for bad, complaint in (
        ({"n_features": 0}, "at least 1"),
        ({"features": "fourier"}, "must be a function"),
    ):
        with pytest.raises(ValueError, match=complaint):
            Gram(**bad)


def test_with_a_metric_functions_have_length_one_and_the_rest_is_the_generalised_problem() -> None:
    rng = np.random.default_rng(3)
    phi = rng.standard_normal((400, 6)) @ rng.standard_normal((6, 6))
    gram = Gram()
    gram.add(phi[:-1], phi[1:])
    M = np.cov(phi.T)
    sp = gram.spectrum(metric=M)
    E = sp.vectors
    np.testing.assert_allclose(E.T @ M @ E, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(gram.matrix @ E, 2 * M @ E * sp.values, atol=1e-6)
    same = gram.spectrum(metric=np.eye(6))
    np.testing.assert_allclose(same.vectors, gram.spectrum().vectors, atol=1e-10)
    flat = np.diag([1.0, 1.0, 1.0, 1.0, 1e-6, 0.0])
    assert gram.spectrum(metric=flat).vectors.shape == (6, 4), (
        "where features hardly differ there is no direction"
    )
    for metric, k, complaint in (
        (np.eye(5), None, r"metric must be finite numbers of shape \(6, 6\), got shape \(5, 5\)"),
        (np.full((6, 6), np.nan), None, "metric must be finite"),
        (np.eye(6), 7, "k must be in 1..6, the directions in which features differ, got 7"),
        (np.zeros((6, 6)), None, r"k must be in 1..0"),
    ):
        with pytest.raises(ValueError, match=complaint):
            gram.spectrum(k, metric=metric)
