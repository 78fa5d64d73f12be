"""The paper's experiments, one file each; `find_experiments` finds them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from reproduction.lab import Experiment


def find_experiments() -> list[Experiment]:
    """Return all experiments in the order of the report: a module that ends in ``EXPERIMENT`` is one."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    experiments = [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]
    return sorted(experiments, key=lambda experiment: experiment.order)
