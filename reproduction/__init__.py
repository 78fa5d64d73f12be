"""Experiments as data, with their store and their report: the paper's figures and claims, and the Atari games.

A file of a subfolder ends in ``EXPERIMENT``, or in several, ``EXPERIMENTS``; a subfolder whose ``__init__`` defines
``EXPERIMENTS`` declares all of its own there. `all_experiments` finds them, so adding one takes one file.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from reproduction.experiment import Claim as Claim
from reproduction.experiment import Experiment as Experiment
from reproduction.experiment import Note as Note
from reproduction.experiment import Pmap as Pmap
from reproduction.experiment import Results as Results
from reproduction.experiment import Settings as Settings
from reproduction.experiment import enough as enough
from reproduction.experiment import sizes as sizes
from reproduction.experiment import verdict as verdict


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in the order of the report.

    >>> [e.name for e in all_experiments()][:3]
    ['figure1', 'figure2', 'theorem31']
    """
    found: list[Experiment] = []
    for folder in iter_modules(__path__, f"{__name__}."):
        if folder.ispkg:
            modules = [import_module(folder.name)]
            if not hasattr(modules[0], "EXPERIMENTS"):
                files = iter_modules(modules[0].__path__, f"{folder.name}.")
                modules = [import_module(file.name) for file in files]
            for module in modules:
                found += getattr(module, "EXPERIMENTS", ())
                found += [module.EXPERIMENT] if hasattr(module, "EXPERIMENT") else []
    return tuple(sorted(found, key=lambda experiment: experiment.order))
