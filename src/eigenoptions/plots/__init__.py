"""Figures: functions that draw on Matplotlib axes, and four figures made of them.

``draw_values(ax, mdp, values)`` and the other ``draw_`` functions draw on axes that you
make with ``plt.subplots``. ``plot_options(options)`` and the other ``plot_`` functions
return a whole figure, like Figures 1 to 7 of the paper. Nothing here needs a display.
"""

from eigenoptions.plots.curves import draw_curves as draw_curves
from eigenoptions.plots.figures import plot_diffusion as plot_diffusion
from eigenoptions.plots.figures import plot_eigenvectors as plot_eigenvectors
from eigenoptions.plots.figures import plot_learning as plot_learning
from eigenoptions.plots.figures import plot_options as plot_options
from eigenoptions.plots.files import save_clip as save_clip
from eigenoptions.plots.files import save_figure as save_figure
from eigenoptions.plots.landscapes import draw_landscape as draw_landscape
from eigenoptions.plots.maps import draw_maze as draw_maze
from eigenoptions.plots.maps import draw_options as draw_options
from eigenoptions.plots.maps import draw_policy as draw_policy
from eigenoptions.plots.maps import draw_values as draw_values
from eigenoptions.plots.observed import draw_points as draw_points
from eigenoptions.plots.observed import draw_strips as draw_strips
from eigenoptions.plots.paths import draw_paths as draw_paths
from eigenoptions.plots.plans import draw_plan as draw_plan
from eigenoptions.plots.visits import plot_first_visits as plot_first_visits
