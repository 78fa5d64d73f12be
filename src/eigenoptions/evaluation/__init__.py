"""What options are worth: hitting times, diffusion times, estimates."""

from eigenoptions.evaluation.diffusion import (
    best_option_chance,
    diffusion_curve,
    diffusion_time,
)
from eigenoptions.evaluation.estimates import diffusion_estimate
from eigenoptions.evaluation.hitting import hitting_times
from eigenoptions.evaluation.intervals import mean_interval

__all__ = [
    "diffusion_time",
    "diffusion_curve",
    "hitting_times",
    "best_option_chance",
    "diffusion_estimate",
    "mean_interval",
]
