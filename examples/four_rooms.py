"""Four rooms
==========

Discover skills, look at two of them, keep them, and let both walk through the maze.

The options are kept in ``four-rooms.safetensors`` in the current folder.

In the picture: the eight options as arrows. Those of e2 lead to two opposite corners, those of e3 to the other two;
red cells are where an option stops.
"""

from __future__ import annotations

import eigenoptions as eo


def main() -> None:
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, n_options=8)
    # The two signs of the second eigenvector; dots mark where they stop.
    print(options[:2])

    print("\noption  eigenvalue  stops in  mean length")
    for option in options:
        stops = option.termination.sum()
        print(
            f"{option.label:>6}  {option.eigenvalue:10.5f}  {stops:8d}  {option.mean_length:11.2f}"
        )

    eo.plots.save_figure(eo.plots.plot_options(options), "four-rooms.svg")
    options.save("four-rooms.safetensors")
    print()
    for option in eo.load_options("four-rooms.safetensors", rooms, only=[0, 1]):
        state, path = rooms.start, []
        while (action := option.act(state)) != eo.TERMINATE:
            path.append("↑→↓←"[action])
            state = int(rooms.successors[state, action])
        print(
            f"From the start {option.label} walks {''.join(path) or 'nowhere'} and stops in state {state}."
        )


if __name__ == "__main__":
    main()
