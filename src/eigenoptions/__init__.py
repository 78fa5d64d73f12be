"""eigenoptions: option discovery with graph Laplacians.

An implementation of *A Laplacian Framework for Option Discovery in Reinforcement
Learning* (Machado, Bellemare and Bowling, ICML 2017). `discover` is the whole pipeline;
the other names are its steps, in order. They load when they are first used, so that
``import eigenoptions`` stays light.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gymnasium

from eigenoptions._registry import (
    data_readers,
    discovery_methods,
    environment_checks,
    feature_maps,
    notebook_pictures,
    option_files,
    sample_readers,
    source_readers,
)

if TYPE_CHECKING:
    from eigenoptions.discovery import discover as discover
    from eigenoptions.discovery.features import Fitted as Fitted
    from eigenoptions.discovery.features import Trained as Trained
    from eigenoptions.discovery.method import methods as methods
    from eigenoptions.envs import OptionsVectorWrapper as OptionsVectorWrapper
    from eigenoptions.envs import OptionsWrapper as OptionsWrapper
    from eigenoptions.envs import ShapedReward as ShapedReward
    from eigenoptions.envs import from_env as from_env
    from eigenoptions.evaluation import best_option_chance as best_option_chance
    from eigenoptions.evaluation import diffusion_curve as diffusion_curve
    from eigenoptions.evaluation import diffusion_estimate as diffusion_estimate
    from eigenoptions.evaluation import diffusion_time as diffusion_time
    from eigenoptions.evaluation import hitting_times as hitting_times
    from eigenoptions.explore import Explorer as Explorer
    from eigenoptions.explore import Exploring as Exploring
    from eigenoptions.explore import ExploringVector as ExploringVector
    from eigenoptions.explore import Found as Found
    from eigenoptions.explore import MapWrapper as MapWrapper
    from eigenoptions.explore import Rules as Rules
    from eigenoptions.explore import draw_until_won as draw_until_won
    from eigenoptions.explore import explore as explore
    from eigenoptions.explore import load_found as load_found
    from eigenoptions.explore import load_rules as load_rules
    from eigenoptions.learning import LearningRecord as LearningRecord
    from eigenoptions.learning import q_learning as q_learning
    from eigenoptions.mdp import MDP as MDP
    from eigenoptions.mdp import from_graph as from_graph
    from eigenoptions.mdp import graph as graph
    from eigenoptions.mdp import maze as maze
    from eigenoptions.mdp import mazes as mazes
    from eigenoptions.options import TERMINATE as TERMINATE
    from eigenoptions.options import Option as Option
    from eigenoptions.options import OptionSet as OptionSet
    from eigenoptions.options import Purpose as Purpose
    from eigenoptions.options import eigenpurposes as eigenpurposes
    from eigenoptions.options.solver import solve as solve
    from eigenoptions.options.storage import load_options as load_options
    from eigenoptions.samples import Transitions as Transitions
    from eigenoptions.samples import check_columns as check_columns
    from eigenoptions.samples.collection import collect as collect
    from eigenoptions.samples.incidence import feature_spectrum as feature_spectrum
    from eigenoptions.samples.incidence import incidence as incidence
    from eigenoptions.samples.linear import LinearOptionSet as LinearOptionSet
    from eigenoptions.spectra import Spectrum as Spectrum
    from eigenoptions.spectra import laplacian as laplacian
    from eigenoptions.spectra import spectrum as spectrum
    from eigenoptions.vectors import Planner as Planner

# Public names by the module that holds them.
_NAMES = {
    "mdp": "MDP maze mazes graph from_graph",
    "spectra": "Spectrum laplacian spectrum",
    "options": "TERMINATE Purpose Option OptionSet eigenpurposes",
    "options.solver": "solve",
    "options.storage": "load_options",
    "discovery": "discover",
    "discovery.features": "Fitted Trained",
    "discovery.method": "methods",
    "samples": "Transitions check_columns",
    "samples.collection": "collect",
    "envs": "from_env OptionsWrapper OptionsVectorWrapper ShapedReward",
    "explore.explorer": "explore Explorer",
    "explore.loading": "load_found",
    "explore.wrappers": "Exploring ExploringVector",
    "explore.found": "Found",
    "explore.layouts": "MapWrapper Rules load_rules draw_until_won",
    "samples.incidence": "incidence feature_spectrum",
    "samples.linear": "LinearOptionSet",
    "evaluation": (
        "diffusion_time diffusion_curve hitting_times best_option_chance "
        "diffusion_estimate"
    ),
    "vectors": "Planner",
    "learning": "q_learning LearningRecord",
}
_OWNERS = {name: module for module, names in _NAMES.items() for name in names.split()}
# Modules are attributes of the package without an import: eo.plots.plot_options(...).
_MODULES = {
    module.name for module in iter_modules(__path__) if not module.name.startswith("_")
}

__version__ = "0.3.0"
__all__ = [*_OWNERS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"eigenoptions.{name}")
    if name not in _OWNERS:
        raise AttributeError(f"module 'eigenoptions' has no attribute {name!r}")
    value = getattr(import_module(f"eigenoptions.{_OWNERS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})


class _Root(ModuleType):
    """The class of this package, whose attribute `explore` is always the function.

    A folder has the name of the function. Whoever imports a module of a folder sets the
    folder as an attribute of its parent package, and ``eo.explore(env)`` would call a
    module. A property takes precedence over the attributes of its object.
    """

    @property
    def explore(self) -> Any:
        """The function: ``from eigenoptions.explore import ...`` reads the folder."""
        return import_module("eigenoptions.explore.explorer").explore

    @explore.setter
    def explore(self, value: Any) -> None:
        """Leave the function in its place when the folder is imported."""
        if not isinstance(value, ModuleType):
            raise AttributeError("eigenoptions.explore cannot be replaced")


sys.modules[__name__].__class__ = _Root

# What lower layers look up by name, and the upper layer that has it.
discovery_methods.announce_folder("eigenoptions.discovery.methods")
environment_checks.announce("dynamics", "eigenoptions.envs:check_dynamics")
data_readers.announce("transitions", "eigenoptions.samples:Transitions")
source_readers.announce(
    "eigenoptions.explore.found.Found", "eigenoptions.explore.from_found:read_found"
)
source_readers.announce(
    "eigenoptions.explore.layouts.found.LayoutFound",
    "eigenoptions.explore.layouts.from_layout:read_layout",
)
source_readers.announce("key", "eigenoptions.explore.from_key:explore_source")
source_readers.announce("explored part", "eigenoptions.explore.explorer:explore")
source_readers.announce(
    "explored environment", "eigenoptions.explore.from_key:explore_key"
)
source_readers.announce("data", "eigenoptions.samples.reading:read_data")
source_readers.announce(
    "sampled environment", "eigenoptions.samples.reading:sample_source"
)
sample_readers.announce("vectors", "eigenoptions.vectors.from_vectors:discover_cells")
sample_readers.announce(
    "fitted vectors", "eigenoptions.vectors.from_vectors:tune_fitted"
)
sample_readers.announce(
    "trained features", "eigenoptions.deep.from_frames:learn_purposes"
)
option_files.announce(
    "linear options", "eigenoptions.samples.storage:make_linear_options"
)
for _kind in ("table", "options", "spectrum", "found", "planner"):
    notebook_pictures.announce(_kind, f"eigenoptions.plots.notebooks:show_{_kind}")
feature_maps.announce_folder("eigenoptions.samples.features")
feature_maps.announce("cells", "eigenoptions.vectors.cells:Cells")
feature_maps.announce("clusters", "eigenoptions.deep:Clusters")
feature_maps.announce("deep", "eigenoptions.deep:Encoder")
feature_maps.announce("ram", "eigenoptions.atari:Ram")

_MAZES = {
    "FourRooms": "four-rooms",
    "OpenRoom": "open-room",
    "IMaze": "i-maze",
    "Maze": "four-rooms",
}
for _name, _maze in _MAZES.items():
    gymnasium.register(
        f"eigenoptions/{_name}-v0",
        "eigenoptions.envs.mazes:MazeEnv",
        kwargs={"maze": _maze},
    )
