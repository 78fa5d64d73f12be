"""Sphinx settings. Nothing here needs the network: no intersphinx, no remote fonts or scripts."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

import eigenoptions
from eigenoptions.studio import write_static

sys.path[:0] = [str(Path(__file__).parent / "ext"), str(Path(__file__).parent)]

import gallery  # noqa: E402 (modules of this folder)
import notebooks  # noqa: E402

project = "eigenoptions"
author = "the eigenoptions contributors"
copyright = author
version = release = eigenoptions.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "public_names"]
exclude_patterns = ["_build", "ext"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3

default_role = "py:obj"  # `solve` in a docstring links to it
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a plain list: two fields may share a line
napoleon_attr_annotations = False  # the signature has them

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_title = f"eigenoptions {release}"
# The pages of the arena of methods and of that of agents, with the numbers behind the second.
html_extra_path = [
    "arena.html",
    "agents-arena.html",
    *(f"agents-arena-{name}.csv" for name in ("runs", "curves", "summary")),
]


def annotations_as_written(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Show ``NDArray[np.float64]`` as the source has it, not what it stands for."""
    if what not in ("function", "method", "class") or signature is None:
        return None
    written = inspect.signature(value)
    shown = [p for p in written.parameters.values() if p.name != "self"]
    result = None if what == "class" else written.return_annotation
    text = stringify_signature(written.replace(parameters=shown), show_return_annotation=False)
    return text.replace("<factory>", "..."), result  # what a dataclass shows for a fresh default is no Python


def colon_is_no_type(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading ``what it is: and why`` in the first line of a property as type and text."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(": ", " – ")


def studio_to_try(app: Sphinx, failure: Exception | None) -> None:
    """Put the studio without a server beside the pages, where studio.md links to it."""
    if failure is None and app.builder.name == "html":
        write_static(Path(app.outdir) / "try")


def generated_pages(app: Sphinx) -> None:
    """Write the pages of the gallery, with the pictures that `make docs` has drawn, and those of the notebooks."""
    gallery.write_pages(Path(app.srcdir) / "gallery")
    notebooks.write_pages(Path(app.srcdir) / "notebooks")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", generated_pages)
    app.connect("build-finished", studio_to_try)
    app.connect("autodoc-process-signature", annotations_as_written)
    app.connect("autodoc-process-docstring", colon_is_no_type, priority=400)  # before napoleon
