"""The paper made again: one file a figure or statement, each with settings, `run`, `figure` and `claims`.

`EXPERIMENTS` is the one list of them, in the order of the report. To add one, write its file and name it
here.
"""

from eigenoptions.experiments import atari
from eigenoptions.experiments.experiment import Claim as Claim
from eigenoptions.experiments.experiment import Experiment as Experiment
from eigenoptions.experiments.paper import (
    bottlenecks,
    every_goal,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    random_options,
    readings,
    tasks,
    theorem31,
)

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
    random_options.EXPERIMENT,
    tasks.EXPERIMENT,
    every_goal.EXPERIMENT,
    readings.EXPERIMENT,
    *atari.EXPERIMENTS,
)
