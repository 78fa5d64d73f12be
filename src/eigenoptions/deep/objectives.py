"""How an encoder is trained: VAMP-2 and three other objectives to compare it with, the settings, and the optimiser.

Each objective takes the outputs z of pairs of observations and returns a loss. `vamp2` and `omm` need pairs only;
`allo` and `ggdo` also take the outputs of two independent batches, and `allo` keeps dual variables between steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eigenoptions._validation import check_choice, check_float, check_int, check_type
from eigenoptions.deep.backend import torch

# Share of the mean variance that is added to each variance, so that the first steps are not singular.
RIDGE = 1e-6
# Weight of the penalty on correlated outputs (GGDO), its first value and the rates of ALLO's dual variables.
GGDO_PENALTY = 5.0
ALLO_PENALTY, ALLO_DUAL_RATE, ALLO_PENALTY_RATE, ALLO_MAX_DUAL = 2.0, 1e-4, 0.01, 100.0


def vamp2(before: Any, after: Any, *others: Any, state: dict[str, Any] | None = None) -> Any:
    """Minus the sum of squared autocorrelations of the best functions in the span of the outputs (Mardt et al., 2018).

    With the centred outputs z, z', ``C = (zz + z'z') / 2`` and ``R = sym(z z')``, it is ``-||C^-1/2 R C^-1/2||^2``:
    without penalties or dual variables, and independent of the scale and basis of the outputs.
    """
    C, R = _covariances(before, after, centre=True)
    ridge = RIDGE * torch.trace(C).detach() / len(C) + 1e-12
    L = torch.linalg.cholesky(C + ridge * torch.eye(len(C), dtype=C.dtype))
    M = torch.linalg.solve_triangular(L, R, upper=False)
    M = torch.linalg.solve_triangular(L, M.T, upper=False)
    return -(M * M).sum()


def omm(before: Any, after: Any, *others: Any, state: dict[str, Any] | None = None) -> Any:
    """Orbital minimisation (Ryu, Zhou and Wornell, 2025): ``-tr((2 I - C) R)``, without constraints.

    Its operator must be positive: R is that of the lazy walk, ``(C + R) / 2``.
    """
    C, R = _covariances(before, after, centre=False)
    R = 0.5 * (C + R)
    return -torch.trace((2 * torch.eye(len(C), dtype=C.dtype) - C) @ R)


def ggdo(before: Any, after: Any, first: Any, second: Any, *, state: dict[str, Any] | None = None) -> Any:
    """Generalized graph drawing (Wang et al., 2021): smooth prefixes of the outputs, correlations penalised."""
    d = before.shape[1]
    weight = torch.arange(d, 0, -1, dtype=before.dtype)
    smooth = (((before - after) ** 2).mean(dim=0) * weight).sum()
    shared = torch.minimum(weight[:, None], weight[None, :])
    errors = [u.T @ u / len(u) - torch.eye(d, dtype=u.dtype) for u in (first, second)]
    return smooth + GGDO_PENALTY * (shared * errors[0] * errors[1]).sum()


def allo(before: Any, after: Any, first: Any, second: Any, *, state: dict[str, Any] | None = None) -> Any:
    """Augmented Lagrangian Laplacian objective (Gomez, Bowling and Machado, 2024); `state` holds its dual variables."""
    state = {} if state is None else state
    d = before.shape[1]
    dual = state.setdefault("dual", torch.zeros(d, d))
    penalty = state.setdefault("penalty", ALLO_PENALTY)
    eye = torch.eye(d, dtype=before.dtype)
    one, two = (torch.tril(u.T @ u.detach() / len(u) - eye) for u in (first, second))
    error, square = 0.5 * (one + two), one * two
    smooth = ((before - after) ** 2).mean(dim=0).sum()
    loss = smooth + (dual * error).sum() + penalty * square.sum()
    with torch.no_grad():
        rise = ALLO_DUAL_RATE * error.detach()
        state["dual"] = (dual + rise).clamp(-ALLO_MAX_DUAL, ALLO_MAX_DUAL)
        state["penalty"] = penalty + ALLO_PENALTY_RATE * max(0.0, float(square.detach().mean()))
    return loss


def _covariances(before: Any, after: Any, *, centre: bool) -> tuple[Any, Any]:
    """Symmetrised covariance ``(q, q)`` of the outputs, and that of the outputs before with those after, in float64."""
    x, y = before.double(), after.double()
    if centre:
        mean = 0.5 * (x.mean(dim=0) + y.mean(dim=0))
        x, y = x - mean, y - mean
    n = len(x)
    cross = x.T @ y / n
    return (x.T @ x + y.T @ y) / (2 * n), 0.5 * (cross + cross.T)


OBJECTIVES: dict[str, Callable[..., Any]] = {"vamp2": vamp2, "omm": omm, "allo": allo, "ggdo": ggdo}
# Objectives that need two more batches of observations.
INDEPENDENT_BATCHES = ("allo", "ggdo")


@dataclass(frozen=True)
class Training:
    """Settings of `learn`.

    Attributes
    ----------
    objective
        ``"vamp2"``, or ``"omm"``, ``"allo"``, ``"ggdo"`` to compare with.
    batch
        Pairs per step.
    rate
        Largest step size of Adam; it falls linearly to zero.
    discount
        Of the geometric distances in time between the observations of a pair.
    lag
        Distance in time of the pairs of the Ritz step; smaller where trajectories are short.
    outputs
        Functions that are trained; None: `k` plus 6, at least 16.
    noise
        Standard deviation of the noise that is added to the inputs, whose components have variance 1. None: 0.6 where
        no observation occurs twice and encoder "random" is used, 0.3 with `control` and that encoder, else 0.
    control
        Whether features depend only on what actions influence, so that a clock or other movers are ignored; see
        `deep.control`. For encoders "mlp" and "random".
    recognise
        Whether noisy observations that show the same thing are numbered like those that repeat exactly, where they can
        be told apart; see `deep.recognition`. For encoder "random" without `control`.

    Examples
    --------
    >>> Training(batch=512).rate
    0.003
    """

    objective: str = "vamp2"
    batch: int = 1024
    rate: float = 3e-3
    discount: float = 0.9
    lag: int = 5
    outputs: int | None = None
    noise: float | None = None
    control: bool = False
    recognise: bool = True

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        for name in ("batch", "lag") + (("outputs",) if self.outputs is not None else ()):
            check_int(name, getattr(self, name))
        check_float("discount", self.discount, minimum=0, below=1)
        for name in ("rate",) + (("noise",) if self.noise is not None else ()):
            check_float(name, getattr(self, name), minimum=0)
        for name in ("control", "recognise"):
            check_type(name, getattr(self, name), bool, "give True or False")


class Adam:
    """Adam (Kingma and Ba, 2015) for a list of tensors. torch's own takes seconds to import."""

    def __init__(self, parameters: list[Any], decay: tuple[float, float] = (0.9, 0.999)) -> None:
        self.parameters, self.decay, self.time = parameters, decay, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(self, rate: float) -> None:
        """Move every tensor by its gradient, and clear it."""
        self.time += 1
        one, two = self.decay
        scale = rate * (1 - two**self.time) ** 0.5 / (1 - one**self.time)
        with torch.no_grad():
            for p, (mean, square) in zip(self.parameters, self.moments, strict=True):
                if p.grad is None:
                    continue
                mean.mul_(one).add_(p.grad, alpha=1 - one)
                square.mul_(two).addcmul_(p.grad, p.grad, value=1 - two)
                p.addcdiv_(mean, square.sqrt().add_(1e-8), value=-scale)
                p.grad = None
