"""The paper's experiments: each module with a function `run` is one; see `reproduction.lab`."""

import inspect
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from reproduction.lab import Experiment


def find_experiments() -> list[Experiment]:
    """Return all experiments in the order of the report."""
    modules = [
        import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)
    ]
    experiments = [
        make_experiment(module) for module in modules if hasattr(module, "run")
    ]
    return sorted(experiments, key=lambda experiment: experiment.order)


def make_experiment(module: ModuleType) -> Experiment:
    """The experiment of a module: its docstring has the title and then what the paper shows."""
    title, shows, *_ = inspect.getdoc(module).split("\n\n")  # type: ignore[union-attr]
    names = (
        "SECTION",
        "ORDER",
        "CAPTION",
        "OURS",
        "QUICK",
        "run",
        "figure",
        "claims",
        "notes",
        "headline",
    )
    parts = {
        name.lower(): getattr(module, name) for name in names if hasattr(module, name)
    }
    name = module.__name__.rpartition(".")[2]
    return Experiment(
        name, title.removesuffix("."), shows=shows.replace("\n", " "), **parts
    )
