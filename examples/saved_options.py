"""Save options and load some of them
==================================

A file without pickle, which knows the state space it belongs to.

In the picture: options 1, 9, 17 and 25 of 64, read from the file without the
other sixty. Later options have finer purposes and stop in more places.
"""

import eigenoptions as eo

FILE = "saved-options.safetensors"

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=64)
options.save(FILE)

# The file also says how the options were made.
some = eo.load_options(FILE, rooms, only=[0, 8, 16, 24])
print(repr(some))
settings = {}
for name in ("method", "operator", "source"):
    if name in some.provenance:
        settings[name] = some.provenance[name]
print(settings)

# Options of another maze are refused.
try:
    eo.load_options(FILE, eo.maze("open-room"))
except ValueError as error:
    print(f"ValueError: {error}")

figure = eo.plots.plot_options(some)
eo.plots.save_figure(figure, "saved-options.svg")
