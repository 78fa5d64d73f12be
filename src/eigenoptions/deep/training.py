"""`learn`: a feature map trained on transitions, and the spectrum of its span (beyond the paper's Section 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_choice, check_float, check_int, make_generator
from eigenoptions.deep import memory, recognition, ritz
from eigenoptions.deep.backend import one_thread, torch
from eigenoptions.deep.control import MAX_TRANSITIONS, Pairs
from eigenoptions.deep.dataset import REPEATING_BELOW, Dataset
from eigenoptions.deep.encoder import COMPONENT_SAMPLE, NOISY_SAMPLE, Encoder, untrained
from eigenoptions.deep.objectives import INDEPENDENT_BATCHES, OBJECTIVES, Adam, Training
from eigenoptions.mdp import Transitions
from eigenoptions.spectra import Spectrum

log = logging.getLogger("eigenoptions")

# CPU seconds of training where neither seconds nor steps is given.
DEFAULT_SECONDS = 15.0
# Cost of a step on the reference core: seconds of overhead, and floating-point operations per second.
STEP_OVERHEAD, REFERENCE_SPEED = 3e-3, 4e10
# Number of checks of the held-out score during training, pairs of each, and checks without progress before it ends.
CHECKS, CHECK_PAIRS, MAX_IDLE_CHECKS = 20, 4096, 6
# Standard deviation of the noise that is added to inputs of variance 1, and that with `control`.
INPUT_NOISE, CONTROL_NOISE = 0.6, 0.3
# Most bytes of inputs that are stored instead of being computed in each step.
MAX_STORED_BYTES = 1 << 30
# Observations whose inputs are computed at a time.
STORED_BLOCK = 512

Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False, repr=False)
class LearnedSpectrum(Spectrum):
    """A `Spectrum` of trained features, with what is known of its quality.

    Attributes
    ----------
    certificate
        See `Certificate`.
    history
        ``(checks, 3)`` during training: step, score on training pairs, score on held-out pairs.
    """

    certificate: ritz.Certificate | None = None
    history: NDArray[np.float64] | None = None


def learn(
    transitions: Dataset | Transitions | Iterable[Transitions],
    k: int = 16,
    encoder: Any = "auto",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> LearnedSpectrum:
    """Train features on transitions, and find the k slowest functions in their span.

    The last hidden layer of a network is trained by a variational objective (VAMP-2); one exact generalized
    eigenproblem on it (Rayleigh-Ritz) then gives eigenfunctions of the Laplacian of the walk ``I - P``, symmetrised
    where transitions are directed. A part of the data is held out: the weights with the best score on it are kept.
    Where observations repeat exactly, the walk is the one that takes each action seen in an observation equally often.

    Parameters
    ----------
    transitions
        Transitions, an iterable of batches of them (a `Recording`, a `stream`), or a `Dataset`.
    k
        Number of eigenfunctions, the constant one included, as in `spectrum`.
    encoder
        ``"mlp"`` for vectors, ``"random"`` or ``"conv"`` for images, ``"auto"``, or a `torch.nn.Module` from
        observations ``(N, ...)`` to features ``(N, m)``; see `deep.encoder`. An `Encoder` is trained further.
    seconds
        CPU seconds of training on a core of the year 2024. They determine the number of steps, which depends neither
        on the machine nor on its load: the same seed gives the same bytes. A slower core takes longer. None: 15, unless
        `steps` is given.
    steps
        Exact number of training steps.
    rng
        Seed or random generator of weights, batches and held-out blocks.
    progress
        Called with the numbers of steps done and in all.
    settings
        Settings of `Training`: `objective`, `batch`, `rate`, `discount`, `lag`, `outputs`, `noise`, `control`,
        `recognise`.

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
    >>> seen = Transitions(xy[steps.obs], steps.action, xy[steps.next_obs], steps.terminated)
    >>> found = learn(seen, 4, steps=50)
    >>> found.vectors.shape, found.n_zero, bool(found.certificate.resolved.all())
    ((257, 4), 1, True)
    """
    for name in settings:
        check_choice("setting", name, Training.__dataclass_fields__)
    how = Training(**settings)
    k = check_int("k", k, 2)
    generator = make_generator(rng)
    data = Dataset.of(transitions)
    if data.repeating:
        log.info(
            "%d distinct observations in %d transitions: they repeat exactly, so a table of them (number them, and "
            "call discover) is exact and faster than a network",
            len(data.observations),
            len(data),
        )
    with one_thread():
        run = _Run(data, k, encoder, how, generator)
        return run.train(_budget(run, seconds, steps), progress)


def _budget(run: _Run, seconds: float | None, steps: int | None) -> int:
    if steps is not None:
        if seconds is not None:
            raise ValueError("give seconds or steps, not both: seconds determine the steps")
        return check_int("steps", steps)
    seconds = check_float("seconds", DEFAULT_SECONDS if seconds is None else seconds, above=0)
    return max(1, round(seconds / run.seconds_per_step))


class _Run:
    """One training run: an encoder with its weights, the data and their parts."""

    def __init__(self, data: Dataset, k: int, encoder: Any, how: Training, rng: np.random.Generator) -> None:
        self.data, self.k, self.how, self.rng = data, k, how, rng
        _check(data)
        offset = int(rng.integers(4))
        self.train_part, self.held_part = data.split(False, offset), data.split(True, offset)
        n = len(data.observations)
        most = COMPONENT_SAMPLE if data.repeating else NOISY_SAMPLE
        chosen = np.sort(rng.choice(n, min(n, most), replace=False))
        sample = data.observations[chosen]
        if isinstance(encoder, Encoder):
            self.encoder = encoder.with_last_layer(sample)
        else:
            pairs = self._control_pairs() if how.control else None
            self.encoder = untrained(encoder, sample, _steps(data), not data.repeating, rng, pairs)
        self.weights = self.encoder.trainable()
        m = self.encoder.n_features - 1
        if len(data) < 2 * m:
            raise ValueError(
                f"{len(data)} transitions are too few for {m} features: collect at least {2 * m}"
            )
        memory.check_ritz(data, 1 + m)
        outputs = how.outputs or max(16, k + 6)
        head = rng.standard_normal((m, outputs)) / np.sqrt(m)
        self.head = torch.from_numpy(head.astype(np.float32)).requires_grad_()
        noisy = self.encoder.recipe["encoder"] == "random" and (how.control or not data.repeating)
        usual = CONTROL_NOISE if how.control else INPUT_NOISE
        self.noise = how.noise if how.noise is not None else usual if noisy else 0.0
        self.lag = self._longest_lag()
        self.inputs = self._stored_inputs()
        if noisy and how.recognise and not how.control and self.inputs is not None:
            self._recognise(offset)

    def _recognise(self, offset: int) -> None:
        """Number observations that repeat up to noise like those that repeat exactly, where they can be told apart."""
        data, x = self.data, self.inputs.numpy()
        # Along the components noise has about one size, but inputs are scaled to variance 1.
        scale = np.linalg.norm(self.encoder.arrays["components"], axis=0)
        of = recognition.classes(x / scale, *data.all.pairs(1), self.rng)
        if of is None or not self.k <= of.max() + 1 < REPEATING_BELOW * len(data):
            return
        first = np.unique(of, return_index=True)[1]
        log.info("%d observations are %d that repeat up to noise", len(x), len(first))
        self.inputs = torch.from_numpy(recognition.means(x, of)[0])
        before, after = of[data.before], of[data.after]
        self.data = replace(data, observations=data.observations[first], before=before, after=after)
        self.train_part, self.held_part = (self.data.split(held, offset) for held in (False, True))

    def _control_pairs(self) -> Pairs:
        """Observations, actions and next observations of transitions, in the order of time."""
        data, starts = self.data, self.train_part.starts
        at = data._runs[0][starts[:: -(-len(starts) // MAX_TRANSITIONS)]]
        return data.observations[data.before[at]], data.action[at], data.observations[data.after[at]]

    def _noise_covariance(self, encoder: Encoder) -> NDArray[np.float64] | None:
        """``(m, m)`` covariance that noise on the inputs adds to the features; None without `control`."""
        if not (self.how.control and self.noise):
            return None
        obs = self.data.observations
        x = encoder.inputs(obs[:: -(-len(obs) // COMPONENT_SAMPLE)])
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            clean, noisy = (encoder.hidden(z, self.weights).double() for z in (x, x + self.noise * noise))
        return np.asarray(((noisy - clean).T @ (noisy - clean) / len(x)).numpy())

    def _longest_lag(self) -> int:
        """The lag of the Ritz step: the one asked for, or less where few trajectories are so long."""
        for lag in range(self.how.lag, 1, -1):
            if min(len(part.pairs(2 * lag)[0]) for part in (self.train_part, self.held_part)) * 3 > len(
                self.held_part.starts
            ):
                return lag
        return 1

    def _stored_inputs(self) -> Any:
        """Inputs of the trained layers for all distinct observations, where they are not too large."""
        if self.encoder.recipe["encoder"] == "module":
            return None
        n = len(self.data.observations)
        one = self.encoder.inputs(self.data.observations[:1])
        needed = n * one.numel() * 4
        if needed > MAX_STORED_BYTES:
            return None
        memory.check("the inputs of training", needed, "use fewer transitions, or smaller observations")
        stored = torch.empty((n, *one.shape[1:]))
        for low in range(0, n, STORED_BLOCK):
            part = slice(low, low + STORED_BLOCK)
            stored[part] = self.encoder.inputs(self.data.observations[part])
        return stored

    def _inputs(self, numbers: NDArray[np.int64]) -> Any:
        """Inputs of the trained layers for observations by number."""
        if self.inputs is None:
            return self.encoder.inputs(self.data.observations[numbers])
        return self.inputs[numbers]

    @property
    def seconds_per_step(self) -> float:
        """Estimated cost of a training step on the reference core."""
        rows = 2 * self.how.batch * (2 if self.how.objective in INDEPENDENT_BATCHES else 1)
        if self.data.repeating:
            rows = min(rows, len(self.data.observations))
        operations = sum(w.numel() for name, w in self.weights.items() if not name.startswith("conv"))
        shape = self.encoder.inputs(self.data.observations[:1]).shape[2:]
        side = float(np.prod(shape)) if len(shape) == 2 else 1.0
        for i in range(sum(name.startswith("conv") for name in self.weights) // 2):
            side /= 4
            operations += self.weights[f"conv{i}.weight"].numel() * side * 2
        frozen = 0.0 if self.inputs is not None else 4e5
        return float(STEP_OVERHEAD + rows * (6.0 * operations + frozen) / REFERENCE_SPEED)

    def _outputs(self, numbers: NDArray[np.int64]) -> Any:
        """Outputs of observations by number, each distinct one computed once."""
        if len(self.data.observations) <= len(numbers):
            which, back = np.arange(len(self.data.observations)), numbers
        else:
            which, back = np.unique(numbers, return_inverse=True)
            if len(which) > 0.7 * len(numbers):
                which, back = numbers, np.arange(len(numbers))
        x = self._inputs(which)
        if self.noise:
            seed = int(self.rng.integers(2**62))
            x = x + self.noise * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        return (self.encoder.hidden(x, self.weights) @ self.head).index_select(0, torch.from_numpy(back))

    def train(self, n_steps: int, progress: Progress | None) -> LearnedSpectrum:
        """Train, and return the spectrum of the weights with the best held-out score."""
        optimiser = Adam([*self.weights.values(), self.head])
        every = max(1, n_steps // CHECKS)
        state: dict[str, Any] = {}
        best, history, idle = (-np.inf, self._copy()), [], 0
        try:
            for step in range(n_steps):
                self._step(optimiser, self.how.rate * (1.0 - step / n_steps), state)
                last = step + 1 == n_steps
                if (step + 1) % every == 0 or last:
                    scores = self._check_scores()
                    history.append((step + 1, *scores))
                    idle = 0 if scores[1] > best[0] else idle + 1
                    if scores[1] > best[0]:
                        best = scores[1], self._copy()
                    if idle >= MAX_IDLE_CHECKS and not self.data.repeating:
                        break
                if progress is not None:
                    progress(step + 1, n_steps)
        except KeyboardInterrupt:
            log.warning("training was interrupted: the best weights so far are used")
        return self._spectrum(best[1], np.array(history).reshape(-1, 3))

    def _step(self, optimiser: Adam, rate: float, state: dict[str, Any]) -> None:
        objective = self.how.objective
        parts = [*self.train_part.draw(self.how.batch, self.how.discount, self.rng)]
        if objective in INDEPENDENT_BATCHES:
            parts += [self.train_part.draw(self.how.batch, 0.0, self.rng)[0] for _ in range(2)]
        outputs = self._outputs(np.concatenate(parts)).split(self.how.batch)
        loss = OBJECTIVES[objective](*outputs, state=state)
        loss.backward()
        optimiser.step(rate)

    def _copy(self) -> dict[str, Any]:
        return {name: w.detach().clone() for name, w in [*self.weights.items(), ("head", self.head)]}

    def _check_scores(self) -> tuple[float, float]:
        """VAMP-2 scores of the outputs' best functions on pairs of training and on pairs held out."""
        noise, self.noise = self.noise, 0.0
        with torch.no_grad():
            sides = [self._outputs(numbers).double().numpy() for numbers in self._checked]
        self.noise = noise
        return ritz.split_scores(sides[0], sides[1], self.k - 1)

    @cached_property
    def _checked(self) -> list[NDArray[np.int64]]:
        """Numbers of the observations of the pairs by which checks score training, and those held out."""
        sides = [part.pairs(self.lag) for part in (self.train_part, self.held_part)]
        steps = [-(-len(before) // CHECK_PAIRS) or 1 for before, _ in sides]
        return [np.concatenate([x[::step] for x in side]) for side, step in zip(sides, steps, strict=True)]

    def _spectrum(self, weights: dict[str, Any], history: NDArray[np.float64]) -> LearnedSpectrum:
        with torch.no_grad():
            for name, w in self.weights.items():
                w.copy_(weights[name])
        encoder = self.encoder.with_weights({} if self.encoder.module is not None else self.weights)
        data, repeating = self.data, self.data.repeating
        size = len(data.observations) * encoder.n_features * 4
        stored = size <= min(MAX_STORED_BYTES, memory.available_bytes() // 2)
        features = ritz.as_features(lambda x: self._features(encoder, x), len(data.observations), stored)
        lag = ritz.visible_lag(data.all, features, self.k, self.lag) if repeating else self.lag
        added = self._noise_covariance(encoder)
        noisy = lag > 1 and (added is not None or not repeating)
        # What the agent does not control would be among further candidates.
        choose = noisy and not self.how.control
        parts = self.train_part, self.held_part
        trained = ritz.solve(parts[0], features, self.k, lag, added, ritz.NOISY_CANDIDATES if choose else 0)
        near, more = ritz.least_decay(*parts, features, trained, self.k, lag) if choose else (lag, 0)
        found = ritz.solve(data.all, features, self.k, near, added, more)
        if noisy:
            found = ritz.without_noise(found, data.all, features, lag, self.k)
        functions = ritz.as_features(lambda x: features(x) @ found.vectors, len(data.observations), stored)
        implied = ritz.implied(data.all, functions, found.values, lag)
        # Where pairs are exact, there is nothing that a longer lag would remove.
        settled = implied if repeating else ritz.settled(data.all, functions, implied, lag)
        certificate = ritz.Certificate(
            score=ritz.score(self.held_part, features, trained.vectors[:, 1 : self.k], lag),
            best_score=ritz.score(self.train_part, features, trained.vectors[:, 1 : self.k], lag),
            effective_rank=found.rank,
            ritz=found.values,
            implied=implied,
            lag=lag,
            repeating=repeating,
        )
        few = features(np.arange(min(len(data.observations), ritz.MAX_PAIRS // 8)))
        return _result(found, certificate, settled, encoder, few, history)

    def _features(self, encoder: Encoder, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(N, 1 + m)`` features of observations by number, from stored inputs where there are some."""
        if self.inputs is None:
            return encoder(self.data.observations[numbers])
        with torch.no_grad():
            h = encoder.hidden(self.inputs[numbers], self.weights)
        return np.column_stack([np.ones(len(numbers)), h.numpy()])


def _result(
    found: ritz.Solution,
    certificate: ritz.Certificate,
    settled: NDArray[np.float64],
    encoder: Encoder,
    features: NDArray[np.float64],
    history: NDArray[np.float64],
) -> LearnedSpectrum:
    """The spectrum in canonical signs; values of slow or unresolved functions are those implied by longer lags.

    What is left in a function of faster ones has decayed at the longer lag, so that the value implied there is the
    better one, unless the function itself has decayed as well.
    """
    good = certificate.resolved
    slow = certificate.ritz * certificate.lag < ritz.SLOW
    values = np.where(good & ~slow, certificate.ritz, settled)
    order = np.append(0, 1 + np.argsort(values[1:], kind="stable"))
    certificate = replace(certificate, ritz=certificate.ritz[order], implied=certificate.implied[order])
    vectors = found.vectors[:, order]
    f = features @ vectors
    peak = np.abs(f).argmax(axis=0)
    vectors = vectors * np.where(f[peak, np.arange(f.shape[1])] < 0, -1.0, 1.0)
    if not good.all():
        names = ", ".join(f"e{i + 1}" for i in np.flatnonzero(~certificate.resolved))
        log.warning(
            "not resolved: %s; their values are implied by longer lags. Train longer, or use more data", names
        )
    return LearnedSpectrum(
        values[order], vectors, "learned", encoder, 1, None, None, certificate=certificate, history=history
    )


def _steps(data: Dataset) -> NDArray[np.float64]:
    """Typical change of each dimension of vectors in one transition, where it changes at all."""
    if data.observations.ndim != 2:
        return np.ones(1)
    some = np.arange(0, len(data), max(1, len(data) // 20_000))
    change = np.abs(
        data.observations[data.after[some]].astype(np.float64) - data.observations[data.before[some]]
    )
    return np.array([np.median(column[column > 0]) if (column > 0).any() else 1.0 for column in change.T])


def _check(data: Dataset) -> None:
    """Check that there is something to learn, and memory for it."""
    n = len(data.observations)
    if n == 1:
        raise ValueError(
            f"all {len(data)} transitions show one observation: nothing can be learned from constant images"
        )
    if not (data.before != data.after).any():
        raise ValueError("no transition changes the observation: the walk stays in one state each time")
    memory.check_training(data)
