"""A single-file DQN in PyTorch that learns with options
=====================================================

``pip install 'eigenoptions[deep]'``.

Four lines differ from an agent without options: the target discounts by ``info["discount"]``, the largest value is
taken over ``info["action_mask"]``, and so is the greedy choice; options begin with the mean value of the actions.
Exploration is ``env.action_space.sample()`` as ever.

In the picture: the greedy choice in every state. Arrows are actions, digits options (4 is e2+, 5 is e2-, + above 9).
"""

import copy
import random
from collections import deque

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import eigenoptions as eo

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)
rng = np.random.default_rng(0)
rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)
env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
env = eo.OptionsWrapper(env, options, gamma=0.95, record_steps=True)
env.action_space.seed(0)

# Numbered states have nothing in common that a hidden layer could use: one weight per state and choice. With a hidden
# layer, choices that were never tried would inherit the values of others, and be taken for the best.
net = nn.Embedding(rooms.n_states, int(env.action_space.n))
nn.init.normal_(net.weight, std=1e-3)
# Options begin with the mean value of the actions: where nothing is known, the greedy choice is an action.
net.weight.data[:, 4:] = net.weight.data[:, :4].mean(dim=1, keepdim=True)
target, optimizer = copy.deepcopy(net), torch.optim.SGD(net.parameters(), 20.0)
replay: deque = deque(maxlen=20_000)


def act(state: int, mask: np.ndarray) -> int:
    values = net(torch.tensor(state)).detach().numpy()
    return int(np.where(mask, values, -np.inf).argmax())


def learn(batch_size: int = 128) -> None:
    columns = zip(*random.choices(replay, k=batch_size), strict=True)
    state, action, reward, after, discount, mask = (
        torch.as_tensor(np.array(column)) for column in columns
    )
    with torch.no_grad():
        # Double DQN: the network chooses, the target network evaluates. A maximum over many options overestimates.
        best = net(after).masked_fill(mask == 0, -torch.inf).argmax(dim=1, keepdim=True)
        goal = reward + discount * target(after).gather(1, best)[:, 0]
    loss = nn.functional.smooth_l1_loss(
        net(state).gather(1, action[:, None])[:, 0], goal.float()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


steps = updates = 0
state, info = env.reset(seed=0)
for decision in range(3000):
    explores = rng.random() < max(0.05, 1 - decision / 2000)
    before, action = (
        state,
        int(env.action_space.sample()) if explores else act(state, info["action_mask"]),
    )
    state, reward, terminated, truncated, info = env.step(action)
    replay.append(
        (
            before,
            action,
            reward,
            state,
            (not terminated) * info["discount"],
            info["action_mask"],
        )
    )
    # The primitive steps inside an option are transitions too.
    path = info.get("steps", ())
    for step in path:
        discount = 0.0 if terminated and step is path[-1] else step.discount
        replay.append(
            (
                step.obs,
                step.action,
                step.reward,
                step.next_obs,
                discount,
                step.action_mask,
            )
        )
    # By primitive steps, not by decisions: with options there are fewer decisions to learn from.
    steps += info["duration"]
    while steps // 4 > updates:
        learn()
        updates += 1
        if updates % 25 == 0:
            target.load_state_dict(net.state_dict())
    if terminated or truncated:
        state, info = env.reset()

(state, info), over, steps = env.reset(seed=1), False, 0
while not over:
    state, _, terminated, truncated, info = env.step(act(state, info["action_mask"]))
    over, steps = terminated or truncated, steps + info["duration"]
print(
    f"{'Reached the goal' if terminated else 'Gave up'} after {steps} steps; shortest path: 20."
)
best = [
    act(s, np.append(np.ones(4, bool), options.initiation[:, s])) for s in range(104)
]
figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
eo.plots.draw_policy(ax, rooms.coords, best)
ax.set_title("greedy choice")
eo.plots.save_figure(figure, "pytorch-dqn.svg")
