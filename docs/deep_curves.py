"""Learning curves on recorded noisy images, with and without protection against memorised pairs; see docs/deep.md.

Run ``python docs/deep_curves.py`` to draw docs/images/deep-curves.png again (half a minute).
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import eigenoptions as eo
from eigenoptions.deep import Dataset, training
from eigenoptions.options.walks import walk

ROOMS, NOISE, TRANSITIONS, STEPS, K = eo.maze("four-rooms"), 0.1, 12_000, 400, 5


def recorded(clean, rng):
    """Transitions of a random walk, of which each image has its own noise."""
    taken = walk(eo.MDP(ROOMS.transition), TRANSITIONS, rng=rng, max_episode_steps=50)
    noise = np.random.default_rng(rng).normal(0, NOISE, (2, TRANSITIONS, *clean.shape[1:])).astype(np.float32)
    before, after = clean[taken.obs] + noise[0], clean[taken.next_obs] + noise[1]
    # What is seen after one transition is what is seen before the next.
    same = np.flatnonzero(np.arange(TRANSITIONS) % 50 != 0)
    before[same] = after[same - 1]
    return eo.Transitions(before, taken.action, after, taken.terminated)


def truth():
    """The first eigenvectors of the random walk, the constant one left out."""
    P = ROOMS.transition.toarray().reshape(ROOMS.n_states, 4, ROOMS.n_states).mean(axis=1)
    return np.linalg.eigh(np.eye(len(P)) - P)[1][:, 1:K]


def curve(data, clean, encoder, rng, **settings):
    """History of a training that is not stopped, and the share of the true space that its functions contain."""
    run = training._Run(data, K, encoder, training.Training(**settings), np.random.default_rng(rng))
    before, after = (side[:: max(1, len(side) // 4096)] for side in run.train_part.pairs(run.lag))
    shares = []

    def progress(done, total):
        if done % max(1, total // training.CHECKS):
            return
        with torch.no_grad():
            noise, run.noise = run.noise, 0.0
            h, run.noise = run._outputs(np.concatenate([before, after])), noise
            there = (run.encoder.hidden(run.encoder.inputs(clean), run.weights) @ run.head).double().numpy()
        f, g = np.split(h.double().numpy() - h.double().numpy().mean(axis=0), 2)
        S = np.linalg.inv(np.linalg.cholesky(f.T @ f + g.T @ g)).T
        slow = S @ np.linalg.eigh(S.T @ (f.T @ g + g.T @ f) @ S)[1][:, 1 - K :]
        q = np.linalg.qr((there - there.mean(axis=0)) @ slow)[0]
        shares.append(np.linalg.norm(q.T @ truth()) ** 2 / (K - 1))

    return run.train(STEPS, progress).history, shares


def main():
    """Draw both curves."""
    training.MAX_IDLE_CHECKS = STEPS
    clean = np.zeros((ROOMS.n_states, 13, 13), dtype=np.float32)
    clean[np.arange(ROOMS.n_states), ROOMS.coords[:, 0], ROOMS.coords[:, 1]] = 1.0
    data = Dataset.of(recorded(clean, 1))
    torch.manual_seed(1)
    plain = torch.nn.Sequential(
        torch.nn.Flatten(),
        *(torch.nn.Linear(169, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()),
    )
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    titles = ("pixels as they are", "components above the noise, noisy inputs")
    for ax, encoder, title in zip(axes, (plain, "random"), titles, strict=True):
        history, shares = curve(data, clean, encoder, 1, recognise=False)
        best = history[:, 2].argmax()
        ax.plot(history[:, 0], history[:, 1] / (K - 1), label="score, training pairs")
        ax.plot(history[:, 0], history[:, 2] / (K - 1), label="score, held-out pairs")
        ax.plot(history[:, 0], shares[: len(history)], "k--", label="share of the true space")
        ax.axvline(history[best, 0], color="0.6", lw=1)
        ax.annotate("kept", (history[best, 0], 0.02), (-4, 0), textcoords="offset points", ha="right")
        ax.set(title=title, xlabel="training steps", ylim=(0, 1.02))
        print(title, [round(float(s), 3) for s in shares], "kept at", history[best, 0])
    axes[1].legend(loc="center right", bbox_to_anchor=(1, 0.3), fontsize=8)
    figure.savefig(Path(__file__).parent / "images" / "deep-curves.png", dpi=110)


if __name__ == "__main__":
    main()
