"""Your own learning loop
======================

Tabular Q-learning over actions and options, with masks and true discounts.

In the picture: the value of each state after 4,000 decisions (dark is low), and the option or action that is best
there: an arrow is one step, a digit a whole option. Far from the goal, in the upper right corner, options are
preferred.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)
env = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=500)
env = eo.OptionsWrapper(env, options, gamma=0.95)
rng, q = np.random.default_rng(0), np.zeros((rooms.n_states, env.action_space.n))
env.action_space.seed(0)
state, info = env.reset(seed=0)
goals = 0
for _ in range(4000):
    allowed = info["action_mask"] == 1
    # Of equal values, an action goes before an option.
    order = q[state] + 1e-9 * (rng.random(len(allowed)) + (np.arange(len(allowed)) < 4))
    greedy = np.where(allowed, order, -np.inf).argmax()
    action = env.action_space.sample() if rng.random() < 0.3 else greedy
    before = state
    state, reward, terminated, truncated, info = env.step(action)
    best = 0.0 if terminated else q[state, info["action_mask"] == 1].max()
    q[before, action] += 0.5 * (reward + info["discount"] * best - q[before, action])
    goals += terminated
    if terminated or truncated:
        state, info = env.reset()

best = q.argmax(axis=1)
print(
    f"goal reached {goals} times; an option is the best choice in {np.sum(best >= 4)} of 104 states"
)
figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 3.4), layout="constrained")
eo.plots.draw_values(left, rooms, q.max(axis=1), signed=False)
eo.plots.draw_policy(right, rooms.coords, best)
left.set_title("value")
right.set_title("best choice (4 to 11: options)")
eo.plots.save_figure(figure, "action-masks.svg")
