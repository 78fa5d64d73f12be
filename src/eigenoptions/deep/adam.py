"""Adam, of which the first use loads nothing else."""

from __future__ import annotations

from math import sqrt

from eigenoptions.deep.backend import Tensor, torch

# Decay of the running means of gradients and of their squares, as in the paper.
_DECAY_OF_MEANS = 0.9
_DECAY_OF_SQUARES = 0.999


class Adam:
    """Adam (Kingma and Ba, 2015).

    The first use of torch's own optimizers loads its compiler, which takes seconds.

    Parameters
    ----------
    parameters : list of Tensor
        The tensors to be moved.
    """

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        self.n_steps = 0
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]

    def step(self, rate: float) -> None:
        """Move every tensor by its gradient and a rate, and clear the gradient."""
        self.n_steps += 1
        # Both running means begin at zero: the corrections undo that.
        correction1 = 1 - _DECAY_OF_MEANS**self.n_steps
        correction2 = 1 - _DECAY_OF_SQUARES**self.n_steps
        size = rate * sqrt(correction2) / correction1

        with torch.no_grad():
            rows = zip(self.parameters, self.means, self.squares, strict=True)
            for parameter, mean, square in rows:
                gradient = parameter.grad
                if gradient is None:
                    continue
                mean.mul_(_DECAY_OF_MEANS)
                mean.add_(gradient, alpha=1 - _DECAY_OF_MEANS)
                square.mul_(_DECAY_OF_SQUARES)
                square.addcmul_(gradient, gradient, value=1 - _DECAY_OF_SQUARES)
                scale = square.sqrt().add_(1e-8)
                parameter.addcdiv_(mean, scale, value=-size)
                parameter.grad = None
