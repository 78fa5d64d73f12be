"""The protocol of the paper's Appendix E: from random play to directions in the memory of a game.

Rounds of random episodes, one from each start state, are played until 25,000 new transitions have been seen; those on
the way to the start states count too. 25,000 of the rows ``phi(s') - phi(s)``, drawn uniformly, form the incidence
matrix T, and its right singular vectors are the eigenpurposes.

The paper orders singular values from the largest; a `Spectrum` begins with the smallest, and has no column for a
feature that never changed. `paper_order` and `complete` convert.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_float, check_int, check_type, make_generator
from eigenoptions.atari.emulator import Bytes, Emulator, Progress, game_name
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import Start
from eigenoptions.parallel import run_jobs
from eigenoptions.spectra import MAX_DENSE_STATES, Spectrum
from eigenoptions.spectra.gram import Gram

# New transitions to see, and rows of T to draw (Appendix E).
ROWS = 25_000
# A game of Freeway takes 8,192 frames; others might never end.
MAX_EPISODE_FRAMES = 10_000
MAX_ROUNDS = 100
# Rounds without anything new after which a game is given up.
MAX_IDLE_ROUNDS = 3
# Eigenvalues of T'T below this share of the largest are zero; see `directions`.
ZERO_TOLERANCE = 1e-11

Array = NDArray[np.float64]


def collect(
    game: str,
    starts: Sequence[Start],
    n: int = ROWS,
    *,
    rng: int | np.random.Generator = 0,
    coding: Ram | None = None,
    longest: int = MAX_EPISODE_FRAMES,
    rounds: int = MAX_ROUNDS,
    progress: Progress | None = None,
) -> Gram:
    """Differences of features seen in rounds of random episodes, one from each start state (Appendix E).

    Parameters
    ----------
    game, starts
        Name of the game and its start states (`find_starts`). The transitions on the way there are used as well.
    n, rng
        Number of new transitions to see (the round in which they are reached is played to its end, as in the paper),
        and seed or random generator of the actions.
    coding
        The feature map phi of memory; None: the paper's 1,024 bits.
    longest, rounds
        Frames after which an episode is cut, not counting the way to its start, and maximal number of rounds;
        ValueError if they do not suffice, or after three rounds without anything new.
    progress
        Called with new transitions seen and wanted, after each episode.

    Examples
    --------
    The result has all new transitions; `directions` draws from them.

    >>> from eigenoptions.atari import find_starts
    >>> gram = collect("Freeway", find_starts("Freeway", n=2, bursts=10), n=500, longest=400)
    >>> gram.n_features, len(gram) >= 500, gram.n_transitions
    (1024, True, 1003)
    """
    name = game_name(game)
    n, longest, rounds = check_int("n", n), check_int("longest", longest), check_int("rounds", rounds)
    for start in starts:
        check_type("a start state", start, Start, "find some (find_starts)")
    others = {start.game for start in starts} - {name}
    if others or not starts:
        wrong = f"start states of {', '.join(sorted(others))} do not fit {name}"
        raise ValueError(f"{wrong if others else 'there are no start states'}: find some (find_starts)")
    entropy = int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng)
    gram = Gram(features=Ram() if coding is None else coding)
    settings = {"game": name, "longest": longest, "ways": [start.plain()["actions"] for start in starts]}
    idle = turn = taken = 0
    waiting: dict[int, Bytes] = {}

    def arrived(i: int, ram: Bytes) -> None:
        nonlocal taken
        waiting[i] = ram
        # In the order of episodes, on which `Gram.sample` depends.
        while taken in waiting:
            seen = waiting.pop(taken)
            gram.add(seen[:-1], seen[1:])
            taken += 1
        if progress is not None:
            progress(min(len(gram), n), n)

    while len(gram) < n and turn < rounds and idle < MAX_IDLE_ROUNDS:
        before, taken = len(gram), 0
        jobs = [{"start": i, "seed": entropy, "key": [turn, i]} for i in range(len(starts))]
        run_jobs(episode, jobs, shared=settings, on_result=arrived)
        turn, idle = turn + 1, idle + 1 if len(gram) == before else 0
    if len(gram) < n:
        seen = f"{len(gram)} of {n} new transitions were seen in {turn} rounds of {len(starts)} episodes of {name}"
        last = ", the last three without anything new" if idle == MAX_IDLE_ROUNDS else ""
        raise ValueError(f"{seen}{last}: ask for fewer (n), or raise longest or rounds")
    return gram


def episode(job: dict[str, Any], game: str, longest: int, ways: list[list[list[int]]]) -> Bytes:
    """``(T + 1, 128)`` the memory, frame by frame, on the way to a start state and in a random episode from there."""
    emulator = Emulator(game)
    emulator.begin()
    way = [action for action, frames in ways[job["start"]] for _ in range(frames)]
    seed = np.random.SeedSequence(job["seed"], spawn_key=tuple(job["key"]))
    random = np.random.default_rng(seed).integers(emulator.n_actions, size=longest)
    seen = [emulator.ram()]
    for action in (*way, *random.tolist()):
        if emulator.over:
            break
        emulator.act(action)
        seen.append(emulator.ram())
    return np.stack(seen)


def directions(
    gram: Gram, sample: int | None = ROWS, rng: int | np.random.Generator = 0, tol: float = ZERO_TOLERANCE
) -> Spectrum:
    """Singular directions of an incidence matrix of rows drawn uniformly from those collected (Appendix E).

    Parameters
    ----------
    gram, sample, rng
        From `collect`; the number of rows to draw (None: all of them), and the random generator or seed that does.
    tol
        Eigenvalues of T'T below `tol` times the largest are zero. T'T has integer entries, so true zeros are below
        1e-15 of the largest; all others were above 4e-9 of it in the six games that we tried.

    Returns
    -------
    Spectrum
        ``values`` are those of ``T'T / 2`` ascending: singular values are ``sqrt(2 values)``. The first `n_zero`
        columns are the null space among features that changed (two bits that always change together make one such
        direction); `rank` counts the others. Features that never changed have no column, see `complete`.

    Examples
    --------
    >>> gram = Gram(features=Ram(addresses=(0,), n_bytes=1))
    >>> ram = np.array([[0], [3], [0], [4]], dtype=np.uint8)  # bits 0 and 1 change together
    >>> _ = gram.add(ram[:-1], ram[1:])
    >>> found = directions(gram, sample=None)
    >>> rank(found), found.n_zero, found.vectors.shape
    (2, 1, (8, 3))
    """
    if sample is not None and not (isinstance(sample, int | np.integer) and 1 <= sample <= len(gram)):
        few = f"sample must be in 1..{len(gram)}, the differences collected, got {sample!r}"
        raise ValueError(f"{few}: collect more, or take all of them (sample=None)")
    check_float("tol", tol, minimum=0, below=1)
    return (gram if sample is None else gram.sample(int(sample), rng)).spectrum(tol=tol)


def rank(spectrum: Spectrum) -> int:
    """The number of directions in which transitions went: those with a singular value that is not zero.

    >>> rank(Spectrum(np.array([0.0, 1.0, 3.0]), np.eye(3), "incidence"))
    2
    """
    return len(spectrum.values) - spectrum.n_zero


def paper_order(spectrum: Spectrum) -> NDArray[np.int64]:
    """``(K,)`` columns in the paper's order, the largest singular value first: its direction ``#j`` is entry j.

    >>> paper_order(Spectrum(np.array([0.0, 1.0, 3.0]), np.eye(3), "incidence")).tolist()
    [2, 1, 0]
    """
    return np.arange(len(spectrum.values))[::-1].astype(np.int64)


def complete(spectrum: Spectrum) -> Array:
    """``(d, d)`` all directions as columns, an orthonormal basis, in the paper's order: the matrix V of the SVD.

    First the singular directions, then the null space of features that changed, then one unit vector for each feature
    that never did. The paper's 1,024 options are its columns.

    >>> spectrum = Spectrum(np.array([0.0, 2.0]), np.array([[0.6, 0.8], [0.0, 0.0], [0.8, -0.6]]), "incidence")
    >>> complete(spectrum).tolist()
    [[0.8, 0.6, 0.0], [0.0, 0.0, 1.0], [-0.6, 0.8, 0.0]]
    """
    d = len(spectrum.vectors)
    if d > MAX_DENSE_STATES:
        raise ValueError(
            f"{d} directions exceed the limit {MAX_DENSE_STATES}: use fewer bytes (Ram.addresses)"
        )
    return np.concatenate([spectrum.vectors[:, ::-1], np.eye(d)[:, ~active(spectrum)]], axis=1)


def active(spectrum: Spectrum) -> NDArray[np.bool_]:
    """``(d,)`` which features ever changed.

    >>> active(Spectrum(np.array([2.0]), np.array([[1.0], [0.0]]), "incidence")).tolist()
    [True, False]
    """
    moving: NDArray[np.bool_] = np.abs(spectrum.vectors).max(axis=1) > 0
    return moving


def random_directions(
    of: int | Spectrum, rng: int | np.random.Generator = 0, *, inside: str = "features"
) -> Array:
    """Random orthonormal directions ``(k, d)``, uniform over all such bases: the baseline of singular directions.

    Parameters
    ----------
    of, rng
        A number d: a basis of ``R^d``. A `Spectrum`: as many directions as it has rank, in its features.
    inside
        ``"features"``: anywhere on the features that ever changed. ``"data"``: in the span of the singular directions,
        where transitions went, to see whether the choice of basis matters.

    Examples
    --------
    >>> basis = random_directions(3)
    >>> bool(np.allclose(basis @ basis.T, np.eye(3)))
    True
    """
    check_choice("inside", inside, ("features", "data"))
    rng = make_generator(rng)
    if not isinstance(of, Spectrum):
        d = check_int("the number of features", of)
        return _haar(d, d, rng)
    k = rank(of)
    if inside == "data":
        return _haar(k, k, rng) @ of.vectors[:, of.n_zero :].T
    moving = active(of)
    basis = np.zeros((k, len(moving)))
    basis[:, moving] = _haar(k, int(moving.sum()), rng)
    return basis


def _haar(k: int, d: int, rng: np.random.Generator) -> Array:
    """``(k, d)`` orthonormal rows, uniform: QR of a Gaussian matrix, with signs that remove its bias."""
    q, r = np.linalg.qr(rng.standard_normal((d, k)))
    rows: Array = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
    return rows
