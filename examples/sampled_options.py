"""Options of samples become the exact ones: principal angles and equal actions as transitions grow (Theorem 5.1).

Run it with ``python examples/sampled_options.py``. It writes ``sampled-options.svg``.
"""

from __future__ import annotations

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions.discovery.samples import approach


def main() -> None:
    rooms = eo.maze("four-rooms")
    close = approach(rooms, [100, 200, 500, 1000, 2000, 3000, 5000, 7000, 10_000], k=8, runs=10)
    print("transitions  differences  largest angle  mean angle  equal actions")
    for i, n in enumerate(close.transitions):
        largest, mean = close.angles[:, i, 0].mean(), close.angles[:, i].mean()
        seen, equal = close.differences[:, i].mean(), close.agreement[:, i].mean()
        print(f"{n:11d}  {seen:11.1f}  {largest:13.2f}  {mean:10.2f}  {equal:13.1%}")

    angles = {"largest": close.angles[:, :, 0], "mean of 8": close.angles.mean(axis=2)}
    panels = [
        plots.curve_panel(close.transitions, angles, xlabel="transitions", ylabel="principal angle, degrees"),
        plots.curve_panel(
            close.transitions, {"": close.agreement}, xlabel="transitions", ylabel="equal actions"
        ),
    ]
    plots.save(plots.figure(panels, width=plots.PAGE), "sampled-options.svg")


if __name__ == "__main__":
    main()
