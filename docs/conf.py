"""Sphinx settings. Nothing needs the network: no intersphinx, no remote fonts."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature
from sphinx_gallery.scrapers import figure_rst

import eigenoptions
from eigenoptions.studio import write_studio

project = "eigenoptions"
author = "the eigenoptions contributors"
copyright = author
version = release = eigenoptions.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3
# Notebooks hold no outputs: they are run for their page.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

# `solve` in a docstring links to it.
default_role = "py:obj"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_attr_annotations = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"eigenoptions {release}"


# The examples in the order of learning.
EXAMPLES = [
    # What options are, and your own world.
    "four_rooms",
    "own_maze",
    "frozen_lake",
    "explore",
    "own_environment",
    "minigrid_rooms",
    "option_clip",
    "taxi",
    # Agents.
    "hierarchy",
    "learning_curves",
    "option_chance",
    "action_masks",
    "sb3_dqn",
    "sb3_ppo",
    "sb3_maskable_ppo",
    "sb3_minigrid",
    "sb3_explored_dqn",
    "sb3_explored_ppo",
    "pytorch_dqn",
    "continuous_actions",
    "vector_environments",
    # Data and features.
    "recorded_data",
    "sampled_options",
    "warehouse",
    "hall",
    "logged_goals",
    "battery",
    "own_features",
    "mountain_car",
    "cartpole",
    "acrobot",
    "pixels",
    "atari_options",
    # What goes deeper.
    "compare_methods",
    "own_method",
    "stop_chance",
    "commute_time",
    "directed_graph",
    "reward_aware",
    "saved_options",
    "parallel_runs",
]


def order_example(file_name: str) -> int:
    """Where an example stands in the gallery: those that are not listed come last."""
    name = file_name.removesuffix(".py")
    return EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES)


def collect_pictures(
    block: Any, variables: dict[str, Any], settings: dict[str, Any]
) -> str:
    """Pictures that an example wrote beside itself, for its page."""
    source = Path(variables["src_file"])
    targets = []
    for suffix in (".svg", ".png", ".gif"):
        picture = source.parent / f"{source.stem.replace('_', '-')}{suffix}"
        if picture.is_file():
            target = Path(next(variables["image_path_iterator"])).with_suffix(suffix)
            shutil.move(picture, target)
            targets.append(str(target))
    return str(figure_rst(targets, settings["src_dir"]))


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": ".*",
    "within_subsection_order": order_example,
    "image_scrapers": (collect_pictures,),
    "thumbnail_size": (640, 480),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,
    "capture_repr": (),
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]


def show_annotations_as_written(
    app: Sphinx,
    what: str,
    name: str,
    value: Any,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str, str | None] | None:
    """Show ``NDArray[np.float64]`` as the source has it, not what it stands for."""
    if what not in ("function", "method", "class") or signature is None:
        return None
    written = inspect.signature(value)
    shown = [p for p in written.parameters.values() if p.name != "self"]
    result = None if what == "class" else written.return_annotation
    text = stringify_signature(
        written.replace(parameters=shown), show_return_annotation=False
    )
    return text.replace("<factory>", "..."), result


def add_studio(app: Sphinx, failure: Exception | None) -> None:
    """Put the studio beside the pages, where studio.md links to it."""
    if failure is None and app.builder.name == "html":
        write_studio(Path(app.outdir) / "try")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("build-finished", add_studio)
    app.connect("autodoc-process-signature", show_annotations_as_written)
