// Two discovery methods: eigenvectors of the Laplacian, and random goals, with which the paper compares them.

import { random } from "./algebra.js";
import { solve, spectrum, weights } from "./model.js";

function findEigenvectors(table, { many, operator }) {
  const { n, pieces } = table;
  const { values, vectors } = spectrum(weights(table), table, operator);
  const purposes = [];
  for (let i = 0; i < values.length && purposes.length < many; i++) {
    for (const sign of [1, -1]) {
      const potential = vectors.slice(i * n, (i + 1) * n).map((x) => sign * x);
      purposes.push({ label: `e${i + 1 + pieces}${sign > 0 ? "+" : "-"}`, potential, eigenvalue: values[i] });
    }
  }
  return purposes.slice(0, many);
}

function drawGoals({ n }, { many, seed }) {
  const rand = random(seed + 1);
  const states = Array.from({ length: n }, (_, s) => s);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(rand() * (i + 1));
    [states[i], states[j]] = [states[j], states[i]];
  }
  return states.slice(0, many).map((goal) => ({ label: `goal ${goal}`, potential: Float64Array.from({ length: n }, (_, s) => Number(s === goal)) }));
}

export const METHODS = { eigen: findEigenvectors, random: drawGoals };

// {labels, eigenvalues, policies, values, lengths} of a method. Options to a goal look as far as the maze is large.
export function discover(table, method, { many, operator, gamma, seed }) {
  const most = method === "eigen" ? 2 * (table.n - table.pieces) : table.n;
  const purposes = METHODS[method](table, { many: Math.min(many, most), operator, seed });
  const exact = method === "random";
  const solved = solve(table, purposes.map((p) => p.potential), exact ? 1 - 0.5 / (table.n + 1) : gamma, exact);
  return { labels: purposes.map((p) => p.label), eigenvalues: purposes.map((p) => p.eigenvalue), ...solved };
}
