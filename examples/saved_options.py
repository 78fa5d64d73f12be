"""Save options and load some of them
==================================

A file without pickle, which knows the state space it belongs to.

In the picture: options 1, 9, 17 and 25 of 64, read from the file without the other sixty. Later options have finer
purposes and stop in more places.
"""

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=64)
options.save("saved-options.safetensors")

some = eo.load_options("saved-options.safetensors", rooms, only=[0, 8, 16, 24])
print(repr(some))
print(
    {
        key: some.provenance[key]
        for key in sorted(some.provenance)
        if key in ("method", "operator", "source")
    }
)
# A file of another maze is refused.
try:
    eo.load_options("saved-options.safetensors", eo.maze("open-room"))
except ValueError as error:
    print(f"ValueError: {error}")
eo.plots.save_figure(eo.plots.plot_options(some), "saved-options.svg")
