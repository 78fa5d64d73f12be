"""Section 3 of the paper in Montezuma's Revenge: eigenoptions of the game's own graph (needs the extra atari).

A hundred states here, so that it takes seconds; 1,551 are all that can be reached from six starts.

In the picture: where four options take the player from the first start, as a heat map over the screen. Each settles
somewhere else.
"""

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
screen, panels = emulator.screen(), []
x, y = atari.known(GAME).position
played = atari.follow(emulator, begin, chart, options, frames=160, watch=(x, y))
for option, places, length in zip(options, played.watched, played.length, strict=True):
    print(f"{option.label}: from {starts[0].position} to {tuple(places[length - 1].tolist())}")
    panels.append(eo.plots.screen_panel(screen, places[:length], option.label))
eo.plots.save(eo.plots.figure(panels, columns=4), "charted-game.png")
