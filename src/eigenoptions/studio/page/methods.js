// Discovery methods of the page without a server: those of the library that need little beyond a graph.

import { random } from "./algebra.js";
import { solve, spectrum, weights } from "./model.js";

// Of scores that differ by less, relative to the largest, the first counts.
const TIE = 1e-9;
// A state is a passage if its neighbours do not meet again within this many steps once it is removed.
const PASSAGE_STEPS = 8;

const highest = (score) => {
  const scale = score.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const top = score.reduce((most, x) => Math.max(most, x), -Infinity);
  return score.findIndex((x) => x >= top - TIE * scale);
};

const neighbours = ({ next }, s) => [0, 1, 2, 3].map((a) => next[4 * s + a]).filter((t) => t !== s);

const goals = ({ n }, states) => states.map((goal) => ({ label: `goal ${goal}`, potential: Float64Array.from({ length: n }, (_, s) => Number(s === goal)) }));

export function eigen(table, { many, operator, W = weights(table) }) {
  const { values, vectors } = spectrum(W, table, operator, Math.ceil(many / 2));
  const { n, pieces } = table;
  const found = [];
  for (let i = 0; i < values.length && found.length < many; i++) {
    for (const sign of [1, -1]) found.push({ label: `e${i + 1 + pieces}${sign > 0 ? "+" : "-"}`, potential: vectors.slice(i * n, (i + 1) * n).map((x) => sign * x) });
  }
  return found.slice(0, many);
}

function toRandomStates(table, { many, seed }) {
  const rand = random(seed + 1);
  const states = Array.from({ length: table.n }, (_, s) => s);
  for (let i = states.length - 1; i > 0; i--) {
    const j = Math.floor(rand() * (i + 1));
    [states[i], states[j]] = [states[j], states[i]];
  }
  return goals(table, states.slice(0, many));
}

// Connect the two ends of the second eigenvector, again and again (Jinnai et al., 2019).
function covering(table, { many }) {
  if (table.pieces > 1) throw new Error(`method 'covering' needs a connected graph, but the maze has ${table.pieces} components: erase a wall between them`);
  const { n } = table;
  const W = weights(table);
  const found = new Set();
  while (found.size < many) {
    const fiedler = spectrum(W, table, "combinatorial", 1).vectors.slice(0, n);
    const [a, b] = [highest(fiedler), highest(fiedler.map((x) => -x))];
    if (W[a * n + b]) break;
    found.add(a).add(b);
    W[a * n + b] = W[b * n + a] = 1;
  }
  return goals(table, [...found].slice(0, many));
}

// One option per room, to its doorways (paper, Appendix C).
function bottleneck(table) {
  const { n } = table;
  const doors = doorways(table);
  const room = new Int32Array(n).fill(-1);
  let rooms = 0;
  for (let s = 0; s < n; s++) {
    if (room[s] >= 0 || doors.has(s)) continue;
    const queue = [s];
    room[s] = rooms++;
    for (const u of queue) for (const v of neighbours(table, u)) if (!doors.has(v) && room[v] < 0) { room[v] = room[s]; queue.push(v); }
  }
  const found = [];
  for (let i = 0; i < rooms; i++) {
    const mine = [...doors].filter((door) => neighbours(table, door).some((s) => room[s] === i));
    if (!mine.length) continue;
    found.push({ label: `room ${found.length + 1}`, potential: Float64Array.from({ length: n }, (_, s) => Number(mine.includes(s))), inside: Array.from(room, (r) => r === i) });
  }
  if (!found.length) throw new Error("no doorway was found in the maze: this state space has no bottleneck");
  return found;
}

function doorways(table) {
  const { n } = table;
  const passages = new Set();
  for (let s = 0; s < n; s++) {
    const near = neighbours(table, s);
    const apart = near.length >= 2 && near.every((first) => {
      const depth = new Map([[s, 0], [first, 0]]);
      for (const queue = [first]; queue.length && depth.get(queue[0]) < PASSAGE_STEPS;) {
        const u = queue.shift();
        for (const v of neighbours(table, u)) if (!depth.has(v)) { depth.set(v, depth.get(u) + 1); queue.push(v); }
      }
      return near.every((other) => other === first || !depth.has(other));
    });
    if (apart) passages.add(s);
  }
  const cut = [...passages];
  if (!cut.some((s) => neighbours(table, s).some((t) => passages.has(t)))) return passages;
  const score = betweenness(table);
  // Of equal neighbours the first wins: a tiny slope breaks the tie.
  const graded = new Map(cut.map((s, i) => [s, score[s] * (1 - (1e-9 * i) / cut.length)]));
  return new Set(cut.filter((s) => !neighbours(table, s).some((t) => graded.get(t) > graded.get(s))));
}

function betweenness(table) {
  const { n } = table;
  const score = new Float64Array(n);
  for (let source = 0; source < n; source++) {
    const [depth, paths, share] = [new Int32Array(n).fill(-1), new Float64Array(n), new Float64Array(n)];
    depth[source] = 0;
    paths[source] = 1;
    const queue = [source];
    for (const u of queue) {
      for (const v of neighbours(table, u)) {
        if (depth[v] < 0) { depth[v] = depth[u] + 1; queue.push(v); }
        if (depth[v] === depth[u] + 1) paths[v] += paths[u];
      }
    }
    for (let i = queue.length - 1; i > 0; i--) {
      const v = queue[i];
      for (const u of neighbours(table, v)) if (depth[u] === depth[v] - 1) share[u] += (paths[u] / paths[v]) * (1 + share[v]);
      score[v] += share[v];
    }
  }
  return score;
}

// Potentials that single out states are exact, and their options look as far as the maze is large.
export const METHODS = {
  eigen: { purposes: eigen, summary: "eigenvectors of the graph's Laplacian" },
  bottleneck: { purposes: bottleneck, exact: true, summary: "shortest paths to the doorways of each room" },
  covering: { purposes: covering, exact: true, summary: "shortest paths to the two most distant states, which are then connected, and so on" },
  random: { purposes: toRandomStates, exact: true, summary: "shortest paths to random states" },
};

// {labels, policies, values, lengths} of a method.
export function discover(table, method, { many, operator, gamma, seed }) {
  const { purposes, exact } = METHODS[method];
  const found = purposes(table, { many: Math.min(many, method === "eigen" ? 2 * (table.n - table.pieces) : table.n), operator, seed });
  const inside = found.some((p) => p.inside) ? found.map((p) => p.inside) : null;
  const solved = solve(table, found.map((p) => p.potential), exact ? 1 - 0.5 / (table.n + 1) : gamma, { exact, inside });
  return { labels: found.map((p) => p.label), ...solved };
}
