"""`learn`: features trained on transitions, and the spectrum of their span.

It goes beyond the paper's Section 5.2, in which features are given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import FloatArray, IndexArray, Progress, Randomness
from eigenoptions._validation import check_float, check_int, make_generator
from eigenoptions.deep.adam import Adam
from eigenoptions.deep.backend import Module, Tensor, torch, use_one_core
from eigenoptions.deep.dataset import Dataset, Subset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.grouping import compute_group_means, group_observations
from eigenoptions.deep.initialization import initialize_encoder
from eigenoptions.deep.moments import tabulate_features
from eigenoptions.deep.scores import compute_held_out_score, compute_objective
from eigenoptions.deep.spectrum import LearnedSpectrum, compute_spectrum
from eigenoptions.samples import ColumnReport, Transitions, check_columns
from eigenoptions.samples.changes import measure_step
from eigenoptions.samples.columns import ColumnChoice

logger = logging.getLogger("eigenoptions")

# From numbers (N,) of observations to the inputs (N, ...) of the trained layers.
_NumberedInputs: TypeAlias = Callable[[IndexArray], Tensor]

# Observations that are encoded at a time, which bounds the memory.
_BLOCK_ROWS = 512

# Training ends if so many scores in a row were not the best, and observations do not
# repeat: noisy ones are memorised in the end.
_PATIENCE = 6

# Most pairs for a score, which is computed many times.
_PAIRS_OF_SCORE = 4096

# Noise that is added to noisy inputs, whose components have variance 1, so that none is
# memorised.
_INPUT_NOISE = 0.6

# What a core of the year 2024 does per second, and what each training step takes beside
# its operations.
_OPERATIONS_PER_SECOND = 4e10
_OVERHEAD_SECONDS = 3e-3


@shows_progress
def learn(
    transitions: Any,
    k: int = 16,
    encoder: str | Module | Encoder = "auto",
    *,
    columns: ColumnChoice = None,
    seconds: float = 15.0,
    steps: int | None = None,
    batch: int = 1024,
    rate: float = 3e-3,
    discount: float = 0.9,
    lag: int = 5,
    recognise: bool = True,
    rng: Randomness = 0,
    progress: ProgressArgument = None,
    warn: bool = True,
) -> LearnedSpectrum:
    """Train features on transitions, and find the k slowest functions in their span.

    A variational objective (VAMP-2) trains the last hidden layer of a network. One
    exact generalized eigenproblem on this layer (Rayleigh-Ritz) then gives
    eigenfunctions of the Laplacian ``I - P`` of the walk, symmetrised where transitions
    are directed. A part of the data is held out: the weights with the best score on it
    are kept.

    Where observations repeat exactly, the walk is the one that takes each action seen
    in an observation equally often.

    Parameters
    ----------
    transitions : object
        Whatever `Transitions.of` accepts, an iterable of `Transitions`, of which one is
        in memory at a time, or a `Dataset`.
    k : int, default=16
        Number of eigenfunctions, the constant one included, as in `spectrum`.
    encoder : str, torch.nn.Module or Encoder, default="auto"
        ``"mlp"`` for vectors, ``"random"`` for images and long vectors, ``"auto"`` for
        the one that fits, or your own `torch.nn.Module` from observations ``(N, ...)``
        to features ``(N, m)``. An `Encoder` is trained further.
    columns : sequence of int or str, default=None
        The columns of vectors to train on, by number or name; the features still take
        whole observations. None: all.
    seconds : float, default=15
        CPU seconds of training on a core of the year 2024. They determine the number of
        steps, which does not depend on your machine: the same seed gives the same
        bytes.
    steps : int, optional
        Exact number of training steps, in place of `seconds`.
    batch : int, default=1024
        Pairs of observations per step.
    rate : float, default=3e-3
        Largest step size of Adam. It falls linearly to zero.
    discount : float, default=0.9
        Discount of the geometric distances in time between the observations of a pair.
    lag : int, default=5
        Distance in time of the pairs of the Ritz step. It is made smaller where
        trajectories are short.
    recognise : bool, default=True
        Whether noisy observations that show the same state are numbered like those that
        repeat exactly, where they can be told apart (`deep.grouping`; encoder
        ``"random"``).
    rng : int or Generator, default=0
        Seed of weights, batches and held-out blocks.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of steps done and the number of all steps.
    warn : bool, default=True
        Whether a warning names the functions that are not resolved.

    Returns
    -------
    LearnedSpectrum
        ``sp.features(obs) @ sp.vectors`` are the eigenfunctions, with mean 0 and
        variance 1 on the data. The first is constant, so labels of purposes start at
        e2. The largest value of each function on the data is positive. Eigenvalues are
        per transition, comparable with those of a table. ``sp.certificate`` rates each
        of them.

    Examples
    --------
    >>> from eigenoptions.mdp import maze
    >>> from eigenoptions.samples.walking import walk
    >>> rooms = maze("four-rooms")
    >>> steps = walk(rooms, 20000)
    >>> xy = rooms.coords.astype(float)
    >>> obs, next_obs = xy[steps.obs], xy[steps.next_obs]
    >>> transitions = Transitions(obs, steps.action, next_obs, steps.terminated)
    >>> spectrum = learn(transitions, 4, steps=50)
    >>> spectrum.vectors.shape, spectrum.n_zero
    ((769, 4), 1)
    >>> bool(spectrum.certificate.resolved.all())
    True
    """
    progress = check_progress(progress)
    k = check_int("k", k, 2)
    batch = check_int("batch", batch)
    lag = check_int("lag", lag)
    rate = check_float("rate", rate, above=0)
    discount = check_float("discount", discount, minimum=0, below=1)
    seconds = check_float("seconds", seconds, above=0)
    if steps is not None:
        steps = check_int("steps", steps)

    report = None
    if columns is not None:
        recorded = Transitions.of(transitions)
        report = check_columns(recorded, columns, progress=progress)
        transitions = select_columns(recorded, report)
    data = Dataset.of(transitions)
    if (data.before == data.after).all():
        raise ValueError(
            f"none of {len(data)} transitions changes the observation: record steps "
            "that change something"
        )
    if data.repeating:
        logger.info(
            "%r: they repeat exactly, so a table of them (number them) is exact "
            "and faster",
            data,
        )
    with use_one_core():
        trainer = _Trainer(data, k, encoder, lag, recognise, make_generator(rng))
        if steps is None:
            steps = max(1, round(seconds / trainer.estimate_step_seconds(batch)))
        trainer.train(steps, batch, rate, discount, progress)
        learned = trainer.compute_spectrum()

    if report is not None:
        trained: Any = learned.features
        whole = trained.read_columns(report.used, len(report.columns))
        learned = replace(learned, features=whole)
    if warn:
        if report is None:
            _warn_of_columns(data, learned)
        warn_unresolved(learned, k)
    return learned


def warn_unresolved(learned: LearnedSpectrum, k: int) -> None:
    """Warn of those of the first k eigenfunctions that cannot be trusted."""
    certificate = learned.certificate
    assert certificate is not None
    if np.isnan(certificate.implied).any():
        logger.warning(
            "nothing is known of how good the eigenfunctions are: no two transitions "
            "of the data follow each other; give them in the order of time"
        )
        return

    labels = certificate.unresolved_labels
    unresolved = [label for label in labels if int(label[1:]) <= k]
    if unresolved:
        logger.warning(
            "not resolved: %s; train longer (seconds=), or use more data",
            ", ".join(unresolved),
        )


def select_columns(recorded: Transitions, report: ColumnReport) -> Transitions:
    """The same transitions of vectors with the columns in use.

    Parameters
    ----------
    recorded : Transitions
        The transitions.
    report : ColumnReport
        What `check_columns` said of them.
    """
    if recorded.obs.ndim != 2:
        raise ValueError(
            f"columns are those of vectors (N, D), got observations of shape "
            f"{recorded.obs.shape[1:]}: leave out columns="
        )
    return Transitions(
        report.select(recorded.obs),
        recorded.action,
        report.select(recorded.next_obs),
        recorded.terminated,
    )


def _warn_of_columns(
    data: Dataset, learned: LearnedSpectrum, max_columns: int = 64
) -> None:
    """Name columns of vectors that drift, with their share of the first functions."""
    observations = data.observations
    is_vector = observations.ndim == 2 and observations.dtype.kind == "f"
    if not is_vector or observations.shape[1] > max_columns:
        return
    rows = Transitions(
        observations[data.before],
        data.action,
        observations[data.after],
        data.terminated,
    )
    report = check_columns(rows, progress=False)
    if report.suspects:
        # A network makes nothing of a constant column, so that it may stay.
        everything = tuple(range(observations.shape[1]))
        report = replace(report, used=everything)
        report.warn(explain_functions(report, rows.obs, learned))


# Number of functions that are explained, the constant one included.
_N_EXPLAINED = 4


def explain_functions(
    report: ColumnReport, obs: NDArray[Any], learned: LearnedSpectrum
) -> dict[int, str]:
    """What share of the first learned functions each suspect explains, for `warn`.

    Parameters
    ----------
    report : ColumnReport
        What the columns are.
    obs : array of shape (N, D)
        Observations, with all columns.
    learned : LearnedSpectrum
        The functions of whole observations, the constant one first.
    """
    assert learned.features is not None
    rows = obs[:: max(1, len(obs) // 5_000)]
    functions = learned.features(rows) @ learned.vectors[:, 1:_N_EXPLAINED]
    labels = [f"e{number + 2}" for number in range(functions.shape[1])]
    return report.explain(rows, functions, labels)


class _Trainer:
    """One training run: an encoder with its weights, the data and their two parts.

    Parameters
    ----------
    data : Dataset
        The transitions.
    k : int
        Number of eigenfunctions, the constant one included.
    encoder : str, torch.nn.Module or Encoder
        As in `learn`.
    lag : int
        Longest lag of the Ritz step.
    recognise : bool
        Whether noisy observations that show the same state are numbered.
    rng : Generator
        Source of the random numbers.
    """

    def __init__(
        self,
        data: Dataset,
        k: int,
        encoder: str | Module | Encoder,
        lag: int,
        recognise: bool,
        rng: np.random.Generator,
    ) -> None:
        self.k = k
        self.rng = rng

        # Which quarter of the blocks is held out.
        self.offset = int(rng.integers(4))
        self.data = data
        self.training, self.held_out = data.split(self.offset)

        self.encoder = _make_encoder(encoder, data, rng)
        self.weights = self.encoder.get_trainable_weights()
        self.head = self._draw_head()
        self.inputs = self._prepare_inputs()
        self.lag = self._shorten_lag(lag)

        is_noisy = self.encoder.recipe["encoder"] == "random" and not data.repeating
        self.noise = _INPUT_NOISE if is_noisy else 0.0
        if is_noisy and recognise:
            self._recognise_states()

        # Pairs for the held-out score, which is computed many times.
        self.training_check = _take_pairs(self.training, self.lag)
        self.held_out_check = _take_pairs(self.held_out, self.lag)

    def _draw_head(self) -> Tensor:
        """Draw the weights from the last hidden layer to functions that train it.

        There are more of these functions than you asked for.
        """
        n_features = self.encoder.recipe["hidden"][-1]
        if len(self.data) < 2 * n_features:
            raise ValueError(
                f"at least {2 * n_features} transitions are needed "
                f"for {n_features} features, got {len(self.data)}: record more steps"
            )
        n_functions = max(16, self.k + 6)
        head = self.rng.standard_normal((n_features, n_functions)) / np.sqrt(n_features)
        return torch.from_numpy(head.astype(np.float32)).requires_grad_()

    def _prepare_inputs(self) -> _NumberedInputs:
        """Inputs of the trained layers by number of the observation.

        They are computed once, but for a user's module, whose inputs are observations.
        """
        observations = self.data.observations
        if self.encoder.module is not None:

            def compute_inputs(numbers: IndexArray) -> Tensor:
                return self.encoder.compute_inputs(observations[numbers])

            return compute_inputs

        blocks = []
        for low in range(0, len(observations), _BLOCK_ROWS):
            block = observations[low : low + _BLOCK_ROWS]
            blocks.append(self.encoder.compute_inputs(block))
        return _make_lookup(torch.cat(blocks))

    def _shorten_lag(self, lag: int) -> int:
        """A lag at which enough trajectories are long enough, at most `lag`."""
        n_pairs = len(self.held_out.starts) // 3
        longest = min(
            self.training.find_longest_lag(n_pairs),
            self.held_out.find_longest_lag(n_pairs),
        )
        return max(1, min(lag, longest // 2))

    def _recognise_states(self) -> None:
        """Number noisy observations like exact ones, where they can be told apart.

        From then on the mean of all observations of a state takes their place.
        """
        data = self.data
        x = self.inputs(np.arange(len(data.observations))).numpy()

        # Noise has about one size along the components, but inputs have variance 1.
        scale = np.linalg.norm(self.encoder.arrays["components"], axis=0)
        before, after = data.all.list_pairs(1)
        groups = group_observations(x / scale, before, after, self.rng)
        if groups is None:
            return

        _, first_rows = np.unique(groups, return_index=True)
        n_states = len(first_rows)
        grouped = replace(
            data,
            observations=data.observations[first_rows],
            before=groups[data.before],
            after=groups[data.after],
        )
        if n_states < self.k or not grouped.repeating:
            return

        logger.info("%d noisy observations show %d states", len(x), n_states)
        means, _ = compute_group_means(x, groups)
        self.inputs = _make_lookup(torch.from_numpy(means))
        self.data = grouped
        self.training, self.held_out = grouped.split(self.offset)

    def estimate_step_seconds(self, batch: int) -> float:
        """Estimate the CPU seconds of a training step."""
        n_rows = 2 * batch
        if self.data.repeating:
            # Each distinct observation of a batch is computed once.
            n_rows = min(n_rows, len(self.data.observations))

        n_weights = sum(weight.numel() for weight in self.weights.values())
        n_operations = 6.0 * n_weights
        if self.encoder.module is not None:
            n_operations += 4e5
        return _OVERHEAD_SECONDS + n_rows * n_operations / _OPERATIONS_PER_SECOND

    def train(
        self,
        n_steps: int,
        batch: int,
        rate: float,
        discount: float,
        progress: Progress | None = None,
    ) -> None:
        """Train, and keep the weights with the best held-out score.

        Parameters
        ----------
        n_steps, batch, rate, discount, progress
            As in `learn`; `n_steps` is its `steps`.
        """
        optimizer = Adam([*self.weights.values(), self.head])
        check_every = max(1, n_steps // 20)
        best_score = -np.inf
        best_weights = self._copy_weights()
        n_scores_since_best = 0

        try:
            for step in range(n_steps):
                self._compute_gradients(batch, discount)
                optimizer.step(rate * (1.0 - step / n_steps))

                n_done = step + 1
                if n_done % check_every == 0 or n_done == n_steps:
                    score = self._compute_held_out_score()
                    n_scores_since_best += 1
                    if score > best_score:
                        best_score = score
                        best_weights = self._copy_weights()
                        n_scores_since_best = 0
                    if n_scores_since_best >= _PATIENCE and not self.data.repeating:
                        break

                if progress is not None:
                    progress(n_done, n_steps)
        except KeyboardInterrupt:
            logger.warning("training was interrupted: the best weights so far are used")

        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(best_weights[name])

    def _copy_weights(self) -> dict[str, Tensor]:
        """A copy of the present weights."""
        return {name: weight.detach().clone() for name, weight in self.weights.items()}

    def _compute_gradients(self, batch: int, discount: float) -> None:
        """Compute gradients of the objective on a new batch of pairs."""
        before, after = self.training.draw_pairs(batch, discount, self.rng)
        outputs = self._compute_outputs(np.append(before, after), self.noise)
        loss = -compute_objective(outputs[:batch], outputs[batch:])
        loss.backward()  # type: ignore[no-untyped-call]

    def _compute_held_out_score(self) -> float:
        """Score of functions fitted to training pairs, on pairs that were held out."""
        with torch.no_grad():
            training_outputs = self._compute_outputs(self.training_check)
            held_out_outputs = self._compute_outputs(self.held_out_check)
        return compute_held_out_score(
            training_outputs.double().numpy(),
            held_out_outputs.double().numpy(),
            self.k - 1,
        )

    def _compute_outputs(self, numbers: IndexArray, noise: float = 0.0) -> Tensor:
        """Outputs of observations by number, each distinct one computed once."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        x = self.inputs(distinct)
        if noise > 0:
            generator = torch.Generator()
            generator.manual_seed(int(self.rng.integers(2**62)))
            x = x + noise * torch.randn(x.shape, generator=generator)

        last_layer = self.encoder.compute_layers(x, self.weights)[-1]
        outputs = last_layer @ self.head
        return outputs.index_select(0, torch.from_numpy(inverse))

    def compute_spectrum(self) -> LearnedSpectrum:
        """Compute the spectrum of the features with the present weights."""
        # A user's module holds its own weights.
        trained = {} if self.encoder.module is not None else self.weights
        encoder = self.encoder.replace_weights(trained)

        def encode(numbers: IndexArray) -> FloatArray:
            with torch.no_grad():
                layers = encoder.compute_layers(self.inputs(numbers), self.weights)
            constant = np.ones(len(numbers))
            return np.column_stack([constant, layers[-1].numpy()])

        features = tabulate_features(encode, len(self.data.observations))
        return compute_spectrum(
            encoder, features, self.training, self.held_out, self.k, self.lag
        )


def _make_encoder(
    encoder: str | Module | Encoder, data: Dataset, rng: np.random.Generator
) -> Encoder:
    """Make the encoder to be trained, fitted to a sample of the observations."""
    # Components of noisy observations need a larger sample.
    max_sample = 4096 if data.repeating else 16_384
    n = len(data.observations)
    rows = np.sort(rng.choice(n, min(n, max_sample), replace=False))
    sample = data.observations[rows]

    if isinstance(encoder, Encoder):
        return encoder.copy_for(sample)
    return initialize_encoder(
        encoder, sample, _estimate_step_sizes(data), not data.repeating, rng
    )


def _estimate_step_sizes(data: Dataset, max_transitions: int = 20_000) -> FloatArray:
    """Estimate the typical change of each dimension of vectors in one transition.

    Transitions in which a dimension does not change do not count.
    """
    if data.observations.ndim != 2:
        return np.ones(1)

    stride = max(1, len(data) // max_transitions)
    before: NDArray[Any] = data.observations[data.before[::stride]]
    after = data.observations[data.after[::stride]].astype(np.float64)
    step_sizes = measure_step(after - before, quantile=0.5)
    return np.where(step_sizes > 0.0, step_sizes, 1.0)


def _make_lookup(table: Tensor) -> _NumberedInputs:
    """Make a function that looks inputs up by the number of the observation."""

    def get_inputs(numbers: IndexArray) -> Tensor:
        return table[torch.from_numpy(numbers)]

    return get_inputs


def _take_pairs(subset: Subset, lag: int) -> IndexArray:
    """Numbers of evenly spaced pairs: all first observations, then the second ones."""
    before, after = subset.list_pairs(lag)
    stride = max(1, ceil(len(before) / _PAIRS_OF_SCORE))
    return np.append(before[::stride], after[::stride])
