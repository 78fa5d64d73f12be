"""The paper made again: one file a figure or statement, each with settings, `run`, `figure` and `claims`.

`EXPERIMENTS` is the one list of them, in the order of the report. To add one, write its file and name it
here.
"""

from eigenoptions.paper import (
    atari,
    bottlenecks,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    goals,
    randoms,
    tasks,
    theorem31,
    variants,
)
from eigenoptions.paper.experiment import Claim as Claim
from eigenoptions.paper.experiment import Experiment as Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    figure1.EXPERIMENT,
    figure2.EXPERIMENT,
    theorem31.EXPERIMENT,
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure6.EXPERIMENT,
    figure7.EXPERIMENT,
    bottlenecks.EXPERIMENT,
    randoms.EXPERIMENT,
    tasks.EXPERIMENT,
    goals.EXPERIMENT,
    variants.EXPERIMENT,
    *atari.EXPERIMENTS,
)
