"""Your own learning loop
======================

Tabular Q-learning over actions and options, with masks and true discounts.

In the picture: the value of each state after 4,000 decisions (dark is low), and
the option or action that is best there: an arrow is one step, a digit a whole
option. Far from the goal, in the upper right corner, options are preferred.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)
env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
env = eo.OptionsWrapper(env, options, gamma=0.95)

rng = np.random.default_rng(0)
env.action_space.seed(0)
n_choices = env.action_space.n
is_action = np.arange(n_choices) < rooms.n_actions
q = np.zeros((rooms.n_states, n_choices))


def choose(state, mask):
    """Choose the best available action or option, or a random one."""
    # Of equal values, an action goes before an option.
    order = q[state] + 1e-9 * (rng.random(n_choices) + is_action)
    best = np.where(mask == 1, order, -np.inf).argmax()
    if rng.random() < 0.3:
        return env.action_space.sample()
    return best


goals = 0
state, info = env.reset(seed=0)
for _ in range(4000):
    action = choose(state, info["action_mask"])
    next_state, reward, terminated, truncated, info = env.step(action)

    # What can still be gained is discounted by the steps that the option took.
    target = reward
    if not terminated:
        available = info["action_mask"] == 1
        target += info["discount"] * q[next_state, available].max()
    q[state, action] += 0.5 * (target - q[state, action])

    state = next_state
    goals += terminated
    if terminated or truncated:
        state, info = env.reset()

best = q.argmax(axis=1)
n_options_best = np.sum(best >= rooms.n_actions)
print(
    f"goal reached {goals} times; "
    f"an option is the best choice in {n_options_best} of 104 states"
)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(6.5, 3.4), layout="constrained"
)
eo.plots.draw_values(left, rooms, q.max(axis=1), signed=False)
left.set_title("value")
eo.plots.draw_policy(right, rooms.coords, best)
right.set_title("best choice (4 to 11: options)")
eo.plots.save_figure(figure, "action-masks.svg")
