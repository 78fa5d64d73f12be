"""A single-file DQN in PyTorch that learns with options
=====================================================

``pip install '.[deep]'`` (in a clone).

Four lines differ from an agent without options: the target discounts by
``info["discount"]``, the largest value is taken over ``info["action_mask"]``,
and so is the greedy choice; options begin with the mean value of the actions.
Exploration is ``env.action_space.sample()`` as ever.

In the picture: the greedy choice in every state. Arrows are actions, digits
options (4 is e2+, 5 is e2-, + above 9).
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

# Numbered states have nothing in common that a hidden layer could use: one
# weight per state and choice. With a hidden layer, choices that were never
# tried would inherit the values of others, and be taken for the best.
net = nn.Embedding(rooms.n_states, int(env.action_space.n))
nn.init.normal_(net.weight, std=1e-3)

# Options begin with the mean value of the actions: where nothing is known, the
# greedy choice is an action.
action_values = net.weight.data[:, : rooms.n_actions]
mean_values = action_values.mean(dim=1, keepdim=True)
net.weight.data[:, rooms.n_actions :] = mean_values

target_net = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), 20.0)

# State, action or option, reward, next state, discount, mask of the next state.
replay: deque = deque(maxlen=20_000)


def choose_best(state: int, mask: np.ndarray) -> int:
    """Choose the available action or option with the largest value."""
    values = net(torch.tensor(state)).detach().numpy()
    return int(np.where(mask, values, -np.inf).argmax())


def learn(batch_size: int = 128) -> None:
    """Take one step of gradient descent."""
    batch = random.choices(replay, k=batch_size)
    columns = zip(*batch, strict=True)
    tensors = [torch.as_tensor(np.array(column)) for column in columns]
    state, action, reward, next_state, discount, mask = tensors

    with torch.no_grad():
        # Double DQN: the network chooses, the target network evaluates. A
        # maximum over many options overestimates.
        values = net(next_state).masked_fill(mask == 0, -torch.inf)
        best = values.argmax(dim=1, keepdim=True)
        next_value = target_net(next_state).gather(1, best)[:, 0]
        target = reward + discount * next_value

    value = net(state).gather(1, action[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(value, target.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


n_steps = 0
n_updates = 0
state, info = env.reset(seed=0)
for decision in range(3000):
    exploration = max(0.05, 1 - decision / 2000)
    if rng.random() < exploration:
        action = int(env.action_space.sample())
    else:
        action = choose_best(state, info["action_mask"])
    next_state, reward, terminated, truncated, info = env.step(action)

    discount = 0.0 if terminated else info["discount"]
    mask = info["action_mask"]
    replay.append((state, action, reward, next_state, discount, mask))

    # The primitive steps inside an option are transitions, too.
    path = info.get("steps", ())
    for step in path:
        is_last = step is path[-1]
        discount = 0.0 if terminated and is_last else step.discount
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

    # One update for four primitive steps, not for so many decisions: with
    # options there are fewer decisions to learn from.
    n_steps += info["duration"]
    while n_steps // 4 > n_updates:
        learn()
        n_updates += 1
        if n_updates % 25 == 0:
            target_net.load_state_dict(net.state_dict())

    state = next_state
    if terminated or truncated:
        state, info = env.reset()

# An episode of greedy choices.
n_steps = 0
is_over = False
state, info = env.reset(seed=1)
while not is_over:
    action = choose_best(state, info["action_mask"])
    state, _, terminated, truncated, info = env.step(action)
    n_steps += info["duration"]
    is_over = terminated or truncated
outcome = "Reached the goal" if terminated else "Gave up"
print(f"{outcome} after {n_steps} steps; shortest path: 20.")

# The greedy choice in every state, among the actions and available options.
choices = []
for state in range(rooms.n_states):
    actions = np.ones(rooms.n_actions, dtype=bool)
    mask = np.append(actions, options.initiation[:, state])
    choices.append(choose_best(state, mask))
figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
eo.plots.draw_policy(ax, rooms.coords, choices)
ax.set_title("greedy choice")
eo.plots.save_figure(figure, "pytorch-dqn.svg")
