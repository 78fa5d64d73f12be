// Random walks over moves and options: expected steps, and Q-learning.

import { inverse, solveSmall } from "./algebra.js";
import { ways } from "./model.js";

// Relative residual up to which expected steps are accepted; beyond it they are too large for double precision.
const MAX_ERROR = 1e-6;
// Chances at which the best is sought before it is refined by golden sections.
const COARSE = [1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97];

// Expected steps from every state to every goal (docs: diffusion time). The equations of a goal differ from those of
// the others by the options whose way leads through it, which end there; so one inverse serves all goals, and each
// goal adds a small system in the steps from the ends of these ways.
export class Walk {
  constructor(table, policies) {
    const { n, next } = this.table = table;
    this.policies = Array.from({ length: policies.length / n }, (_, o) => policies.subarray(o * n, (o + 1) * n));
    this.ways = this.policies.map((policy) => ways(n, next, policy));
    [this.M, this.K] = [new Float64Array(n * n), new Float64Array(n * n)];
    this.added = 0;
  }

  // Weight of each action and of each option that may start, per state, with the first m options.
  shares(m, chance) {
    const { n } = this.table;
    const [action, option] = [new Float64Array(n).fill(1), new Float64Array(n).fill(1)];
    for (let s = 0; chance !== null && s < n; s++) {
      let count = 0;
      for (let o = 0; o < m; o++) count += this.policies[o][s] >= 0;
      action[s] = (count ? 1 - chance : 1) / 4;
      option[s] = count ? chance / count : 0;
    }
    return [action, option];
  }

  add() {
    const { n } = this.table;
    const { step, length, end } = this.ways[this.added++];
    for (let s = 0; s < n; s++) {
      if (step[s] < 0) continue;
      this.M[s * n + s] += 1;
      this.M[s * n + end[s]] -= 1;
      for (let g = 0; g < n; g++) this.K[s * n + g] += length[s];
      for (let g = step[s]; step[g] >= 0; g = step[g]) this.K[s * n + g] -= length[g];
    }
  }

  // (start, goal) expected steps with the first m options (not fewer than before), or null beyond double precision.
  steps(m = this.ways.length, chance = null) {
    const { n, next } = this.table;
    while (this.added < m) this.add();
    const [action, option] = this.shares(m, chance);
    const [M, K] = [this.M.slice(), this.K.slice()];
    for (let s = 0; s < n; s++) {
      for (let j = 0; j < n; j++) {
        M[s * n + j] *= option[s];
        K[s * n + j] = K[s * n + j] * option[s] + 4 * action[s];
      }
      M[s * n + s] += 4 * action[s];
      for (let a = 0; a < 4; a++) M[s * n + next[4 * s + a]] -= action[s];
    }
    for (let i = 0; i < n * n; i++) M[i] += 1;
    const Y = inverse(M, n);
    if (!Y) return null;
    const share = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) share[j] += Y[i * n + j];
    const through = this.through(m, option);
    const H = new Float64Array(n * n);
    for (let g = 0; g < n; g++) this.goal(g, Y, share, K, through[g], H);
    return this.proved(m, action, option, K, H) ? H : null;
  }

  // For each goal, the weights F of the ways through it, by their end: a map from t to [[s, weight], ...].
  through(m, option) {
    const { n } = this.table;
    const found = Array.from({ length: n }, () => new Map());
    for (const { step, end } of this.ways.slice(0, m)) {
      for (let s = 0; s < n; s++) {
        if (step[s] < 0) continue;
        for (let g = step[s]; step[g] >= 0; g = step[g]) {
          if (!found[g].has(end[s])) found[g].set(end[s], []);
          found[g].get(end[s]).push([s, option[s]]);
        }
      }
    }
    return found;
  }

  goal(g, Y, share, K, through, H) {
    const { n } = this.table;
    const ends = [...through.keys()];
    // The row of g is no equation: its entry makes the right side orthogonal to the stationary weights.
    const right = new Float64Array(n);
    let mass = 0;
    for (let s = 0; s < n; s++) {
      if (s === g) continue;
      right[s] = K[s * n + g];
      mass += share[s] * right[s];
    }
    if (ends.length) {
      const lift = ends.map((t) => (Y[t * n + g] - Y[g * n + g]) / share[g]);
      const b = ends.map((t, i) => {
        let sum = -lift[i] * mass;
        for (let s = 0; s < n; s++) sum += (Y[t * n + s] - Y[g * n + s]) * right[s];
        return sum;
      });
      const G = ends.map((t, i) => ends.map((other, j) => {
        let [sum, weight] = [0, 0];
        for (const [s, w] of through.get(other)) {
          if (s === g) continue;
          sum += (Y[t * n + s] - Y[g * n + s]) * w;
          weight += share[s] * w;
        }
        return sum - lift[i] * weight + (i === j);
      }));
      const h = solveSmall(G, b);
      ends.forEach((t, i) => {
        for (const [s, w] of through.get(t)) {
          if (s === g) continue;
          right[s] -= w * h[i];
          mass -= share[s] * w * h[i];
        }
      });
    }
    right[g] = -mass / share[g];
    let base = 0;
    for (let s = 0; s < n; s++) base += Y[g * n + s] * right[s];
    for (let t = 0; t < n; t++) {
      let sum = -base;
      for (let s = 0; s < n; s++) sum += Y[t * n + s] * right[s];
      H[t * n + g] = t === g ? 0 : sum;
    }
  }

  // Whether every equation holds to the relative error: then so does every entry, because the matrix is an M-matrix.
  proved(m, action, option, K, H) {
    const { n, next } = this.table;
    const left = new Float64Array(n);
    for (let s = 0; s < n; s++) {
      left.fill(0);
      let total = 4 * action[s];
      for (let a = 0; a < 4; a++) {
        const to = next[4 * s + a];
        for (let g = 0; g < n; g++) left[g] += action[s] * H[to * n + g];
      }
      for (const { step, end } of this.ways.slice(0, m)) {
        if (step[s] < 0) continue;
        total += option[s];
        for (let g = 0; g < n; g++) left[g] += option[s] * H[end[s] * n + g];
        for (let g = step[s]; step[g] >= 0; g = step[g]) left[g] -= option[s] * H[end[s] * n + g];
      }
      for (let g = 0; g < n; g++) {
        if (g !== s && !(Math.abs(K[s * n + g] - total * H[s * n + g] + left[g]) <= MAX_ERROR * K[s * n + g])) return false;
      }
    }
    return true;
  }

  // Mean of the expected steps over all ordered pairs of different states.
  time(m = this.ways.length, chance = null) {
    const H = this.steps(m, chance);
    const { n } = this.table;
    return H && H.reduce((a, b) => a + b, 0) / (n * (n - 1));
  }

  // The chance of an option with the least diffusion time.
  best() {
    const value = (chance) => this.time(this.ways.length, chance) ?? Infinity;
    const coarse = COARSE.map((c) => [c, value(c)]);
    const i = coarse.reduce((best, [, t], j) => (t < coarse[best][1] ? j : best), 0);
    let [low, high] = [COARSE[i - 1] ?? 0, COARSE[i + 1] ?? 0.999];
    const golden = (Math.sqrt(5) - 1) / 2;
    let [a, b] = [high - golden * (high - low), low + golden * (high - low)];
    let [fa, fb] = [value(a), value(b)];
    while (high - low > 2e-3 * high) {
      if (fa < fb) {
        [high, b, fb] = [b, a, fa];
        a = high - golden * (high - low);
        fa = value(a);
      } else {
        [low, a, fa] = [a, b, fb];
        b = low + golden * (high - low);
        fb = value(b);
      }
    }
    const [chance, time] = [[a, fa], [b, fb], coarse[i]].reduce((x, y) => (y[1] < x[1] ? y : x));
    return { chance, time };
  }
}

// A decision at a state: the number of an option that may start there, or -1 for a move.
function decide(policies, s, chance, rand) {
  const open = [];
  policies.forEach((policy, o) => { if (policy[s] >= 0) open.push(o); });
  const option = chance === null ? rand() * (4 + open.length) >= 4 : rand() < chance;
  return open.length && option ? open[Math.floor(rand() * open.length)] : -1;
}

// Whether the greedy evaluation episode after each learning episode reached the goal, for one run: Q-learning over
// moves, behaviour over moves and options (paper, Section 4.3).
export function learn(table, policies, chance, { episodes, steps, rand }) {
  const { n, next, start, goal } = table;
  const Q = new Float64Array(4 * n);
  const most = (s) => Math.max(Q[4 * s], Q[4 * s + 1], Q[4 * s + 2], Q[4 * s + 3]);
  return Array.from({ length: episodes }, () => {
    let [s, option] = [start, -1];
    for (let t = 0; t < steps && s !== goal; t++) {
      if (option < 0 || policies[option][s] < 0) option = decide(policies, s, chance, rand);
      const a = option < 0 ? Math.floor(4 * rand()) : policies[option][s];
      const to = next[4 * s + a];
      Q[4 * s + a] += 0.1 * ((to === goal ? 1 : 0.9 * most(to)) - Q[4 * s + a]);
      s = to;
    }
    s = start;
    for (let t = 0; t < steps && s !== goal; t++) {
      const best = most(s);
      const equal = [0, 1, 2, 3].filter((a) => Q[4 * s + a] === best);
      s = next[4 * s + (rand() < 0.01 ? Math.floor(4 * rand()) : equal[Math.floor(equal.length * rand())])];
    }
    return s === goal ? 1 : 0;
  });
}
