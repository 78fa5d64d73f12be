"""Three ways to learn with options, and what the options are worth
================================================================

Returns by episode.

In the picture: four rooms, 30 runs each. Actions alone do not find the goal;
options used to explore (the paper's way) help Q-learning from the first
episodes on. SMDP Q-learning also values the options, intra-option learning
learns about all of them from every step.
"""

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)
size = {"runs": 30, "episodes": 60, "rng": 0}
records = {
    "actions only": eo.q_learning(rooms, **size),
    "options to explore": eo.q_learning(rooms, options, **size),
    "SMDP": eo.q_learning(rooms, options, update="smdp", **size),
    "intra-option": eo.q_learning(
        rooms, options, update="intra-option", **size
    ),
}

for name, record in records.items():
    # One return per run and episode: shape (30, 60).
    mean = record.returns.mean()
    last = record.returns[:, -10:].mean()
    print(
        f"{name:19} mean return {mean:.2f}, in the last 10 episodes {last:.2f}"
    )

figure = eo.plots.plot_learning(records, figsize=(6.5, 3.5))
eo.plots.save_figure(figure, "learning-curves.svg")
