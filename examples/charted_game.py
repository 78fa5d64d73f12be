"""Section 3 of the paper in Montezuma's Revenge: eigenoptions of the game's own graph (needs the extra atari).

A few hundred states here, so that it takes seconds; 1,551 are all that can be reached from six starts.
"""

import eigenoptions as eo
from eigenoptions import atari

GAME = "MontezumaRevenge"

starts = atari.find_starts(GAME, n=2, bursts=60)
chart = atari.chart(GAME, starts, limit=200)  # states are the player's places; an action is held for 8 frames
print(chart)

options = eo.discover(chart.mdp, n_options=4)  # as in any maze
emulator = atari.Emulator(GAME)
starts[0].reach(emulator)
begin = emulator.save()
x, y = atari.known(GAME).position
played = atari.follow(emulator, begin, chart, options, frames=160, watch=(x, y))
for option, places, length in zip(options, played.watched, played.length, strict=True):
    print(f"{option.label}: from {starts[0].position} to {tuple(places[length - 1].tolist())}")
