"""Sphinx settings. Nothing here needs the network: no intersphinx, no remote fonts or scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import eigenoptions

sys.path.insert(0, str(Path(__file__).parent / "ext"))

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
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"eigenoptions {release}"
