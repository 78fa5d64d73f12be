"""Section 3 of the paper in Montezuma's Revenge: eigenoptions of the game's own graph (needs the extra atari).

A hundred states here, so that it takes seconds; 1,551 are all that can be reached from six starts.

In the picture: where four options take the player from the first start, as a heat map over the screen. Each settles
somewhere else.
"""

import matplotlib.pyplot as plt

import eigenoptions as eo
from eigenoptions import atari

GAME = "MontezumaRevenge"

starts = atari.find_starts(GAME, n=1, bursts=20)
# States are the player's places; an action is held for 8 frames.
chart = atari.chart(GAME, starts, limit=100)
print(chart)

# As in any maze.
options = eo.discover(chart.mdp, n_options=4)
emulator = atari.Emulator(GAME)
starts[0].reach(emulator)
begin = emulator.save()
screen = emulator.screen()
figure, axes = plt.subplots(1, len(options), figsize=(8, 3), layout="constrained")
x, y = atari.known(GAME).position
played = atari.follow(emulator, begin, chart, options, frames=160, watch=(x, y))
for ax, option, places, length in zip(axes, options, played.watched, played.length, strict=True):
    print(f"{option.label}: from {starts[0].position} to {tuple(places[length - 1].tolist())}")
    ax.imshow(screen)
    ax.plot(*places[:length].T, "r.", markersize=1)
    ax.set_title(option.label)
    ax.set_axis_off()
eo.plots.save_figure(figure, "charted-game.png")
