"""Figures for papers; the only package that imports matplotlib (paper, Figures 1 to 10).

A figure is a grid of panels. Each kind of panel (maze, PVF, option, learning curve) is defined once, and `figure` sets
any of them side by side. Nothing here uses pyplot or needs a display.
"""

from eigenoptions.plots.figures import COLUMN as COLUMN
from eigenoptions.plots.figures import PAGE as PAGE
from eigenoptions.plots.figures import caption as caption
from eigenoptions.plots.figures import curves as curves
from eigenoptions.plots.figures import domains as domains
from eigenoptions.plots.figures import figure as figure
from eigenoptions.plots.figures import heat as heat
from eigenoptions.plots.figures import landscapes as landscapes
from eigenoptions.plots.figures import learning as learning
from eigenoptions.plots.figures import options as options
from eigenoptions.plots.figures import plot as plot
from eigenoptions.plots.figures import pvfs as pvfs
from eigenoptions.plots.figures import save as save
from eigenoptions.plots.figures import svg as svg
from eigenoptions.plots.lines import curve_panel as curve_panel
from eigenoptions.plots.lines import line_style as line_style
from eigenoptions.plots.lines import point_panel as point_panel
from eigenoptions.plots.panels import Panel as Panel
from eigenoptions.plots.panels import maze_panel as maze_panel
from eigenoptions.plots.panels import policy_panel as policy_panel
from eigenoptions.plots.panels import surface_panel as surface_panel
from eigenoptions.plots.panels import value_panel as value_panel
from eigenoptions.plots.screens import clip as clip
from eigenoptions.plots.screens import screen_panel as screen_panel
from eigenoptions.plots.screens import time_panel as time_panel
