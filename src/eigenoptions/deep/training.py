"""`learn`: features trained on transitions, and the spectrum of their span (beyond the paper's Section 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import Progress, check_float, check_int, make_generator
from eigenoptions.data import Transitions
from eigenoptions.deep import recognition, ritz
from eigenoptions.deep.backend import torch, use_one_thread
from eigenoptions.deep.dataset import Dataset, Index
from eigenoptions.deep.encoder import Encoder, initialize_encoder
from eigenoptions.spectra import Spectrum

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True, eq=False, repr=False)
class LearnedSpectrum(Spectrum):
    """A `Spectrum` of trained features, with what is known of its quality.

    Attributes
    ----------
    certificate
        See `Certificate`.
    """

    certificate: ritz.Certificate | None = None


def learn(
    transitions: Dataset | Transitions | Iterable[Transitions],
    k: int = 16,
    encoder: Any = "auto",
    *,
    seconds: float = 15.0,
    steps: int | None = None,
    batch: int = 1024,
    rate: float = 3e-3,
    discount: float = 0.9,
    lag: int = 5,
    recognise: bool = True,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> LearnedSpectrum:
    """Train features on transitions, and find the k slowest functions in their span.

    The last hidden layer of a network is trained by a variational objective (VAMP-2); one exact generalized
    eigenproblem on it (Rayleigh-Ritz) then gives eigenfunctions of the Laplacian of the walk ``I - P``, symmetrised
    where transitions are directed. A part of the data is held out: the weights with the best score on it are kept.
    Where observations repeat exactly, the walk is the one that takes each action seen in an observation equally often.

    Parameters
    ----------
    transitions
        Transitions, an iterable of batches of them, or a `Dataset`.
    k : int, default=16
        Number of eigenfunctions, the constant one included, as in `spectrum`.
    encoder : str, torch.nn.Module or Encoder, default="auto"
        ``"mlp"`` for vectors, ``"random"`` for images and long vectors, ``"auto"``, or a `torch.nn.Module` from
        observations ``(N, ...)`` to features ``(N, m)``. An `Encoder` is trained further.
    seconds : float, default=15
        CPU seconds of training on a core of the year 2024. They determine the number of steps, which does not depend
        on the machine: the same seed gives the same bytes.
    steps : int, optional
        Exact number of training steps, in place of `seconds`.
    batch : int, default=1024
        Pairs per step.
    rate : float, default=3e-3
        Largest step size of Adam; it falls linearly to zero.
    discount : float, default=0.9
        Of the geometric distances in time between the observations of a pair.
    lag : int, default=5
        Distance in time of the pairs of the Ritz step; smaller where trajectories are short.
    recognise : bool, default=True
        Whether noisy observations that show the same state are numbered like those that repeat exactly, where they can
        be told apart (`deep.recognition`; encoder ``"random"``).
    rng : int or Generator, default=0
        Seed of weights, batches and held-out blocks.
    progress : callable, optional
        Called with the number of steps done and in all.

    Returns
    -------
    LearnedSpectrum
        ``sp.features(obs) @ sp.vectors`` are the eigenfunctions, with mean 0 and variance 1 on the data; the first is
        constant, so labels of purposes start at e2. Values are per transition, comparable with those of the table. The
        largest value of each function on the data is positive. ``sp.certificate`` rates each of them.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.options.walks import walk
    >>> rooms = maze("four-rooms")
    >>> steps = walk(rooms, 20000)
    >>> xy = rooms.coords.astype(float)
    >>> transitions = Transitions(xy[steps.obs], steps.action, xy[steps.next_obs], steps.terminated)
    >>> spectrum = learn(transitions, 4, steps=50)
    >>> spectrum.vectors.shape, spectrum.n_zero, bool(spectrum.certificate.resolved.all())
    ((769, 4), 1, True)
    """
    k, batch, lag = (
        check_int("k", k, 2),
        check_int("batch", batch),
        check_int("lag", lag),
    )
    rate = check_float("rate", rate, above=0)
    discount = check_float("discount", discount, minimum=0, below=1)
    seconds = check_float("seconds", seconds, above=0)
    data = Dataset.of(transitions)
    if not (data.before != data.after).any():
        raise ValueError(
            f"none of {len(data)} transitions changes the observation: nothing to learn"
        )
    if data.repeating:
        logger.info(
            "%r: they repeat exactly, so a table of them (number them) is exact and faster",
            data,
        )
    with use_one_thread():
        trainer = Trainer(data, k, encoder, lag, recognise, make_generator(rng))
        if steps is None:
            steps = max(1, round(seconds / trainer.estimate_step_seconds(batch)))
        return trainer.train(check_int("steps", steps), batch, rate, discount, progress)


class Trainer:
    """One training run: an encoder with its weights, the data and their subsets; parameters as in `learn`."""

    def __init__(
        self,
        data: Dataset,
        k: int,
        encoder: Any,
        lag: int,
        recognise: bool,
        rng: np.random.Generator,
    ) -> None:
        self.data, self.k, self.rng = data, k, rng
        offset = int(rng.integers(4))
        self.train_subset, self.held_subset = (
            data.split(False, offset),
            data.split(True, offset),
        )
        # Components of noisy observations need a larger sample.
        n = len(data.observations)
        sample_rows = np.sort(
            rng.choice(n, min(n, 4096 if data.repeating else 16_384), replace=False)
        )
        sample = data.observations[sample_rows]
        if isinstance(encoder, Encoder):
            self.encoder = encoder.copy_for(sample)
        else:
            self.encoder = initialize_encoder(
                encoder, sample, _estimate_steps(data), not data.repeating, rng
            )
        self.weights = self.encoder.trainable()
        m = self.encoder.recipe["hidden"][-1]
        if len(data) < 2 * m:
            raise ValueError(
                f"at least {2 * m} transitions are needed for {m} features, got {len(data)}"
            )
        # More functions are trained than are asked for.
        head = rng.standard_normal((m, max(16, k + 6))) / np.sqrt(m)
        self.head = torch.from_numpy(head.astype(np.float32)).requires_grad_()
        is_noisy = self.encoder.recipe["encoder"] == "random" and not data.repeating
        # Noise that is added to the inputs, whose components have variance 1, so that none is memorised.
        self.noise = 0.6 if is_noisy else 0.0
        # A shorter lag of the Ritz step where few trajectories are long enough.
        n_pairs = len(self.held_subset.starts) // 3
        longest = min(
            subset.find_longest_lag(n_pairs)
            for subset in (self.train_subset, self.held_subset)
        )
        self.lag = max(1, min(lag, longest // 2))
        self.inputs = self._prepare_inputs()
        if is_noisy and recognise:
            self._recognise_states(offset)
        self.check_pairs = []
        for subset in (self.train_subset, self.held_subset):
            before, after = subset.pairs(self.lag)
            stride = -(-len(before) // 4096) or 1
            self.check_pairs.append(np.append(before[::stride], after[::stride]))

    def _recognise_states(self, offset: int) -> None:
        """Number observations that repeat up to noise like those that repeat exactly, where they can be told apart."""
        data, x = self.data, self.inputs(np.arange(len(self.data.observations))).numpy()
        # Along the components noise has about one size, but inputs are scaled to variance 1.
        scale = np.linalg.norm(self.encoder.arrays["components"], axis=0)
        labels = recognition.find_classes(x / scale, *data.all.pairs(1), self.rng)
        if (
            labels is None
            or not self.k <= labels.max() + 1 < data.repeating_below * len(data)
        ):
            return
        first = np.unique(labels, return_index=True)[1]
        logger.info("%d noisy observations show %d states", len(x), len(first))
        self.inputs = torch.from_numpy(
            recognition.compute_class_means(x, labels)[0]
        ).__getitem__
        before, after = labels[data.before], labels[data.after]
        self.data = replace(
            data, observations=data.observations[first], before=before, after=after
        )
        self.train_subset, self.held_subset = (
            self.data.split(held, offset) for held in (False, True)
        )

    def _prepare_inputs(self, block: int = 512) -> Callable[[Index], Any]:
        """Inputs of the trained layers by number of the observation; those of the own encoders are computed once."""
        observations, compute = self.data.observations, self.encoder.inputs
        if self.encoder.module is not None:
            return lambda numbers: compute(observations[numbers])
        blocks = [
            compute(observations[low : low + block])
            for low in range(0, len(observations), block)
        ]
        return torch.cat(blocks).__getitem__  # type: ignore[no-any-return]

    def estimate_step_seconds(self, batch: int) -> float:
        """Cost of a training step on a core of 4e10 operations per second, with an overhead of 3 ms."""
        rows = (
            min(2 * batch, len(self.data.observations))
            if self.data.repeating
            else 2 * batch
        )
        n_weights = sum(w.numel() for w in self.weights.values())
        frozen = 0.0 if self.encoder.module is None else 4e5
        return float(3e-3 + rows * (6.0 * n_weights + frozen) / 4e10)

    def _compute_outputs(self, numbers: Index, noise: float) -> Any:
        """Outputs of observations by number, each distinct one computed once."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        x = self.inputs(distinct)
        if noise:
            seed = int(self.rng.integers(2**62))
            x = x + noise * torch.randn(
                x.shape, generator=torch.Generator().manual_seed(seed)
            )
        outputs = self.encoder.compute_layers(x, self.weights)[-1] @ self.head
        return outputs.index_select(0, torch.from_numpy(inverse))

    def train(
        self,
        n_steps: int,
        batch: int,
        rate: float,
        discount: float,
        progress: Progress | None,
    ) -> LearnedSpectrum:
        """Train, and return the spectrum of the weights with the best held-out score."""
        optimizer = Adam([*self.weights.values(), self.head])
        check_every = max(1, n_steps // 20)
        best_score, best_weights, n_idle = -np.inf, self._copy_weights(), 0
        try:
            for step in range(n_steps):
                pairs = np.concatenate(
                    self.train_subset.draw(batch, discount, self.rng)
                )
                loss = -compute_vamp2_score(
                    *self._compute_outputs(pairs, self.noise).split(batch)
                )
                loss.backward()
                optimizer.step(rate * (1.0 - step / n_steps))
                if (step + 1) % check_every == 0 or step + 1 == n_steps:
                    with torch.no_grad():
                        sides = [
                            self._compute_outputs(x, 0.0).double().numpy()
                            for x in self.check_pairs
                        ]
                    score = ritz.compute_held_score(sides[0], sides[1], self.k - 1)
                    n_idle += 1
                    if score > best_score:
                        best_score, best_weights, n_idle = (
                            score,
                            self._copy_weights(),
                            0,
                        )
                    # Noisy observations are memorised in the end: stop when the held-out score no longer rises.
                    if n_idle >= 6 and not self.data.repeating:
                        break
                if progress is not None:
                    progress(step + 1, n_steps)
        except KeyboardInterrupt:
            logger.warning("training was interrupted: the best weights so far are used")
        return self._solve_ritz(best_weights)

    def _copy_weights(self) -> dict[str, Any]:
        return {name: w.detach().clone() for name, w in self.weights.items()}

    def _solve_ritz(self, weights: dict[str, Any]) -> LearnedSpectrum:
        """The spectrum of the features with these weights, and its certificate."""
        with torch.no_grad():
            for name, w in self.weights.items():
                w.copy_(weights[name])
        encoder = self.encoder.replace_weights(
            {} if self.encoder.module is not None else self.weights
        )
        data, k, repeating = self.data, self.k, self.data.repeating
        n = len(data.observations)

        def encode(numbers: Index) -> NDArray[np.float64]:
            with torch.no_grad():
                h = encoder.compute_layers(self.inputs(numbers), self.weights)[-1]
            return np.column_stack([np.ones(len(numbers)), h.numpy()])

        features = ritz.tabulate_features(encode, n)
        lag = ritz.find_visible_lag(data.all, features, k, self.lag)
        if not repeating:
            # Two lags tell noise from signal.
            lag = max(lag, min(self.lag, 2))
        trained = ritz.solve(self.train_subset, features, k, lag)
        solution = ritz.solve(data.all, features, k, lag)
        if lag > 1 and not repeating:
            solution = ritz.remove_noise(solution, data.all, features, lag)

        functions = ritz.combine_features(features, solution.vectors)
        implied = solution.values
        if len(data.all.pairs(2 * lag)[0]):
            implied = ritz.compute_implied_values(data.all, functions, lag)
        # What a slow or unresolved function contains of faster ones has decayed at longer lags, so the value implied
        # there is the better one. Where pairs are exact, it is the one to certify by, too.
        long_lag = ritz.compute_long_lag_values(data.all, functions, implied, lag)
        implied = long_lag if repeating else implied
        use_ritz = ritz.find_resolved(solution.values, implied) & (
            solution.values * lag >= 0.5
        )
        values = np.where(use_ritz, solution.values, long_lag)
        order = np.append(0, 1 + np.argsort(values[1:], kind="stable"))
        trained_functions = ritz.combine_features(features, trained.vectors[:, 1:])
        subsets = self.held_subset, self.train_subset
        held, best = (
            ritz.compute_score(
                *ritz.compute_moments(subset, trained_functions, lag)[1:]
            )
            for subset in subsets
        )
        compared = solution.values[order], implied[order]
        certificate = ritz.Certificate(held, best, *compared, lag, repeating)
        if not certificate.resolved.all():
            names = ", ".join(
                f"e{i + 1}" for i in np.flatnonzero(~certificate.resolved)
            )
            logger.warning("not resolved: %s; train longer, or use more data", names)
        # The largest value of each function is positive.
        vectors = solution.vectors[:, order]
        f = features(np.arange(min(n, 25_000))) @ vectors
        vectors = vectors * np.where(
            f[np.abs(f).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0
        )
        # They lie in the span of the last layer, after which the encoder's features have others.
        vectors = np.pad(vectors, ((0, encoder.n_features - len(vectors)), (0, 0)))
        results: Any = {"features": encoder, "certificate": certificate}
        return LearnedSpectrum(values[order], vectors, "learned", n_zero=1, **results)


def compute_vamp2_score(before: Any, after: Any) -> Any:
    """Sum of squared autocorrelations of the best functions in the span of outputs ``(N, q)`` (Mardt et al., 2018).

    With the centred outputs z, z', ``C = (zz + z'z') / 2`` and ``R = sym(z z')``, it is ``||C^-1/2 R C^-1/2||^2``: the
    reversible form of the VAMP-2 score (Wu and Noe; Chen, Sidky and Ferguson, 2019), independent of the basis.
    """
    x, y = before.double(), after.double()
    mean = 0.5 * (x.mean(dim=0) + y.mean(dim=0))
    x, y = x - mean, y - mean
    cross = x.T @ y / len(x)
    C, R = (x.T @ x + y.T @ y) / (2 * len(x)), 0.5 * (cross + cross.T)
    # A small share of the mean variance keeps the first steps regular.
    ridge = 1e-6 * torch.trace(C).detach() / len(C) + 1e-12
    L = torch.linalg.cholesky(C + ridge * torch.eye(len(C), dtype=C.dtype))
    M = torch.linalg.solve_triangular(L, R, upper=False)
    M = torch.linalg.solve_triangular(L, M.T, upper=False)
    return (M * M).sum()


class Adam:
    """Adam (Kingma and Ba, 2015). The first use of torch's own loads its compiler, for seconds."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parameters, self.time = parameters, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(self, rate: float, first: float = 0.9, second: float = 0.999) -> None:
        """Move every tensor by its gradient, and clear it."""
        self.time += 1
        scale = rate * (1 - second**self.time) ** 0.5 / (1 - first**self.time)
        with torch.no_grad():
            for p, (mean, square) in zip(self.parameters, self.moments, strict=True):
                if p.grad is None:
                    continue
                mean.mul_(first).add_(p.grad, alpha=1 - first)
                square.mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                p.addcdiv_(mean, square.sqrt().add_(1e-8), value=-scale)
                p.grad = None


def _estimate_steps(data: Dataset) -> NDArray[np.float64]:
    """Typical change of each dimension of vectors in one transition, where it changes at all."""
    if data.observations.ndim != 2:
        return np.ones(1)
    rows = np.arange(0, len(data), max(1, len(data) // 20_000))
    after = data.observations[data.after[rows]].astype(np.float64)
    change = np.abs(after - data.observations[data.before[rows]])
    return np.array(
        [
            np.median(column[column > 0]) if (column > 0).any() else 1.0
            for column in change.T
        ]
    )
