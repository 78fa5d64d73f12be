// The maze as a table of moves, its spectrum and its options, by the rules of the library: canonical eigenvectors, and
// one rule for ties.

import { eigh } from "./algebra.js";

const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]];
// Powers of the degrees in D^-p (D - W) D^-p, and t in v = D^-t u; gamma where the values are a representation's.
export const OPERATORS = {
  normalized: { power: 0.5, tilt: 0 },
  combinatorial: { power: 0, tilt: 0 },
  "random-walk": { power: 0.5, tilt: 0.5 },
  successor: { power: 0.5, tilt: 0.5, gamma: 0.99 },
};
// Distance below which eigenvalues are one repeated eigenvalue: relative, and in units of the norm.
const [SAME_RELATIVE, SAME_ABSOLUTE] = [1e-9, 1e-13];
// Relative distance below which entries of an eigenvector are of equal size.
const TIE = 1e-8;
// Values that differ by less are equal: relative to max|f|, for eigenvectors and for exact potentials.
const [COMPUTED_FLOOR, EXACT_FLOOR] = [1e-9, 1e-12];

// Rows of a map as a rectangle of #, ., S and G, with the wall around it where it had one.
export function read(text) {
  let lines = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  let above = 0;
  while (lines.length && !lines[0]) { lines.shift(); above++; }
  while (lines.length && !lines.at(-1)) lines.pop();
  if (/^\s*\d+\s*,\s*\d+\s*$/.test(lines[0] ?? "")) { lines.shift(); above++; }
  if (!lines.length) throw new Error("the map is empty: give at least one line with a free cell (.)");
  lines.forEach((line, y) => [...line].forEach((c, x) => {
    if (!"#X. SG".includes(c)) throw new Error(`unknown character '${c}' at line ${y + 1 + above} column ${x + 1}: use # or X for walls, . or space for free cells, S start, G goal`);
  }));
  for (const [letter, what] of [["S", "starts"], ["G", "goals"]]) {
    const many = lines.join("").split(letter).length - 1;
    if (many > 1) throw new Error(`the map has ${many} ${what}: keep one ${letter}`);
  }
  const free = lines.flatMap((line, y) => [...line].flatMap((c, x) => (c === "#" || c === "X" ? [] : [[y, x]])));
  if (!free.length) throw new Error("the map has no free cell: write . for each");
  const size = [0, 1].map((k) => {
    const along = free.map((cell) => cell[k]);
    return Math.max(...along) + 1 + (Math.min(...along) > 0);
  });
  const grid = Array.from({ length: size[0] }, () => Array(size[1]).fill("#"));
  for (const [y, x] of free) grid[y][x] = "SG".includes(lines[y][x]) ? lines[y][x] : ".";
  return grid.map((row) => row.join(""));
}

// {n, next (n * 4), start, goal, cells, component, pieces} of the rows of a map.
export function table(rows) {
  const number = new Map();
  rows.forEach((row, y) => [...row].forEach((c, x) => { if (c !== "#") number.set(`${y},${x}`, number.size); }));
  const n = number.size;
  const next = new Int32Array(4 * n);
  const mark = { S: null, G: null };
  for (const [key, s] of number) {
    const [y, x] = key.split(",").map(Number);
    if (rows[y][x] in mark) mark[rows[y][x]] = s;
    MOVES.forEach(([dy, dx], a) => { next[4 * s + a] = number.get(`${y + dy},${x + dx}`) ?? s; });
  }
  const component = new Int16Array(n).fill(-1);
  let pieces = 0;
  for (let s = 0; s < n; s++) {
    if (component[s] >= 0) continue;
    const stack = [s];
    component[s] = pieces;
    while (stack.length) {
      const u = stack.pop();
      for (let a = 0; a < 4; a++) {
        const v = next[4 * u + a];
        if (component[v] < 0) { component[v] = pieces; stack.push(v); }
      }
    }
    pieces++;
  }
  const cells = [...number.keys()].map((key) => key.split(",").map(Number));
  return { n, next, start: mark.S, goal: mark.G, cells, component, pieces };
}

// Symmetric weights of the table's graph.
export function weights({ n, next }) {
  const W = new Float64Array(n * n);
  for (let s = 0; s < n; s++) for (let a = 0; a < 4; a++) if (next[4 * s + a] !== s) W[s * n + next[4 * s + a]] = 1;
  return W;
}

// Non-zero eigenvalues of a graph and their eigenvectors in the canonical basis, as rows.
export function spectrum(W, { n, component, pieces }, operator = "normalized") {
  const { power, tilt, gamma } = OPERATORS[operator];
  const degree = new Float64Array(n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) degree[i] += W[i * n + j];
  const positive = degree.map((d) => d || 1);
  const A = new Float64Array(n * n);
  const side = positive.map((d) => d ** -power);
  let norm = 0;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) A[i * n + j] = ((i === j ? degree[i] : 0) - W[i * n + j]) * (side[i] * side[j]);
    norm = Math.max(norm, A[i * n + i]);
  }
  norm ||= 1;
  // The null space is known: it is moved above everything.
  const unit = positive.map((d) => d ** power);
  const size = new Float64Array(pieces);
  for (let i = 0; i < n; i++) size[component[i]] += unit[i] ** 2;
  for (let i = 0; i < n; i++) unit[i] /= Math.sqrt(size[component[i]]);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (component[i] === component[j]) A[i * n + j] += 4 * norm * unit[i] * unit[j];
  let { values, vectors } = eigh(A, n);
  const many = n - pieces;
  values = values.subarray(0, many).map((v) => Math.max(v, 0));
  vectors = vectors.subarray(0, many * n);
  canonical(values, vectors, n, norm);
  if (tilt) {
    const scale = positive.map((d) => d ** -tilt);
    for (let k = 0; k < many; k++) {
      const v = vectors.subarray(k * n, (k + 1) * n);
      for (let i = 0; i < n; i++) v[i] *= scale[i];
      const length = Math.hypot(...v);
      for (let i = 0; i < n; i++) v[i] /= length;
    }
  }
  if (gamma) values = values.map((v) => 1 / (1 - gamma * (1 - v)));
  return { values, vectors };
}

// Whether eigenvalue i is a copy of the one before.
function same(values, i, norm) {
  return values[i] - values[i - 1] <= SAME_RELATIVE * Math.abs(values[i]) + SAME_ABSOLUTE * norm;
}

function canonical(values, vectors, n, norm) {
  for (let low = 0; low < values.length;) {
    let high = low + 1;
    while (high < values.length && same(values, high, norm)) high++;
    eigenspace(vectors.subarray(low * n, high * n), n, high - low);
    low = high;
  }
}

// The first vector has the largest entry that a unit vector of the space can have, positive there; the next likewise in
// what is left. Of equal entries the state with the lowest number counts.
function eigenspace(block, n, m) {
  const size = new Float64Array(n);
  for (let t = 0; t < m; t++) for (let i = 0; i < n; i++) size[i] += block[t * n + i] ** 2;
  const Q = [];
  for (let t = 0; t < m; t++) {
    const most = size.reduce((a, b) => Math.max(a, b), 0);
    const at = size.findIndex((x) => x >= (1 - 2 * TIE) * most);
    const c = Float64Array.from({ length: m }, (_, j) => block[j * n + at]);
    for (let again = 0; again < 2; again++) {
      for (const q of Q) {
        const h = q.reduce((sum, x, j) => sum + x * c[j], 0);
        q.forEach((x, j) => { c[j] -= h * x; });
      }
    }
    const length = Math.hypot(...c);
    Q.push(c.map((x) => x / length));
    for (let i = 0; i < n; i++) {
      let x = 0;
      for (let j = 0; j < m; j++) x += block[j * n + i] * Q[t][j];
      size[i] -= x * x;
    }
  }
  const copy = block.slice();
  block.fill(0);
  Q.forEach((q, t) => q.forEach((x, j) => { for (let i = 0; i < n; i++) block[t * n + i] += x * copy[j * n + i]; }));
}

// Optimal options of potentials f, one per row: the reward is f(s') - f(s), TERMINATE is worth 0.
// `exact` potentials have a finer tolerance.
export function solve({ n, next }, potentials, gamma, exact = false) {
  const k = potentials.length;
  const [policies, values, lengths] = [new Int8Array(k * n), new Float64Array(k * n), new Float64Array(k)];
  const x = new Float64Array(n);
  potentials.forEach((f, o) => {
    const [policy, value] = [policies, values].map((array) => array.subarray(o * n, (o + 1) * n));
    const scale = f.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const tolerance = (exact ? EXACT_FLOOR : COMPUTED_FLOOR) * scale;
    x.set(f);
    climb(n, next, f, x, gamma);
    for (let s = 0; s < n; s++) {
      let top = -Infinity;
      for (let a = 0; a < 4; a++) top = Math.max(top, x[next[4 * s + a]]);
      const gain = top - f[s];
      const slack = Math.min(0.25 * (1 - gamma) * gain, tolerance);
      policy[s] = -1;
      for (let a = 3; gain > tolerance && a >= 0; a--) if (x[next[4 * s + a]] >= top - slack) policy[s] = a;
      value[s] = Math.max(gain, 0);
    }
    const { length } = ways(n, next, policy);
    const starts = policy.reduce((count, a) => count + (a >= 0), 0);
    lengths[o] = length.reduce((a, b) => a + b, 0) / Math.max(starts, 1);
  });
  return { policies, values, lengths };
}

// Raise x to the least fixed point of x = (1 - gamma) f + gamma max(f, max over moves of x), back and forth.
function climb(n, next, f, x, gamma) {
  for (let rose = true, forward = true; rose; forward = !forward) {
    rose = false;
    for (let i = 0; i < n; i++) {
      const s = forward ? i : n - 1 - i;
      const u = Math.max(f[s], x[next[4 * s]], x[next[4 * s + 1]], x[next[4 * s + 2]], x[next[4 * s + 3]]);
      const y = (1 - gamma) * f[s] + gamma * u;
      if (y > x[s]) { x[s] = y; rose = true; }
    }
  }
}

// For one policy: the next state (-1: stops), steps to the end, and the end, from every state.
export function ways(n, next, policy) {
  const step = Int32Array.from({ length: n }, (_, s) => (policy[s] < 0 ? -1 : next[4 * s + policy[s]]));
  const [length, end] = [new Int32Array(n).fill(-1), new Int32Array(n)];
  for (let s = 0; s < n; s++) {
    const path = [];
    let t = s;
    for (; length[t] < 0 && step[t] >= 0; t = step[t]) path.push(t);
    if (length[t] < 0) { length[t] = 0; end[t] = t; }
    for (let i = path.length - 1; i >= 0; i--) {
      length[path[i]] = length[step[path[i]]] + 1;
      end[path[i]] = end[t];
    }
  }
  return { step, length, end };
}
