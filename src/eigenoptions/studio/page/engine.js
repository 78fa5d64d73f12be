// The worker that computes what the page shows: one answer per request, or a stream of events.

import { random } from "./algebra.js";
import { writeOptions } from "./file.js";
import { discover, METHODS } from "./methods.js";
import { read, spectrum, solve, table, weights } from "./model.js";
import { learn as runQLearning, Walk } from "./walks.js";

// Largest mazes: in cells along a side, in states, and in states where diffusion times are computed.
export const LIMITS = { cells: 64, shown: 64, states: 700, measured: 320 };
const SHOWN_CHANCES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const [UPDATES, RUNS_PER_UPDATE, EPISODES] = [10, 4, 200];

const single = (array) => Float32Array.from(array);
const settings = ({ n_options: many, operator, gamma, seed }) => ({ many, operator, gamma, seed });
const split = ({ policies, labels }, n) => labels.map((_, o) => policies.subarray(o * n, (o + 1) * n));

function readTable(map, limit, python) {
  const t = table(read(map));
  if (t.n > limit) throw new Error(`The page computes this for mazes of up to ${limit} states, and this one has ${t.n}. Download it as text, and in Python: import eigenoptions as eo; mdp = eo.maze("maze.txt"); ${python}`);
  return t;
}

const readMaze = ({ map, n_options: many }) => readTable(map, LIMITS.states, `options = eo.discover(mdp, ${many ?? 32})`);

function readMeasurable({ map, n_options: many }) {
  const t = readTable(map, LIMITS.measured, `eo.diffusion_curve(mdp, eo.discover(mdp, ${many}))`);
  if (t.pieces > 1) throw new Error(`The maze has ${t.pieces} components with no path between them, so the diffusion time is infinite: erase a wall between them.`);
  return t;
}

function picture(body) {
  const t = readMaze(body);
  if (t.pieces === t.n) throw new Error("No free cell has a free neighbour, so there is nowhere to go: erase a wall between two cells.");
  const { values, vectors } = spectrum(weights(t), t, body.operator);
  const k = Math.min(body.shown, values.length);
  const rows = Array.from({ length: k }, (_, i) => vectors.subarray(i * t.n, (i + 1) * t.n));
  const { policies, values: ahead, lengths } = solve(t, rows.flatMap((row) => [row, row.map((x) => -x)]), body.gamma);
  return {
    states: t.n, pieces: t.pieces, more: k < values.length, eigenvalues: Array.from(values.subarray(0, k)),
    labels: rows.flatMap((_, i) => ["+", "-"].map((sign) => `e${i + 1 + t.pieces}${sign}`)),
    vectors: single(vectors.subarray(0, k * t.n)), policies, values: single(ahead), mean_length: Array.from(lengths),
    components: t.pieces > 1 ? t.component : null,
  };
}

async function options(body) {
  const t = readMaze(body);
  const { operator, gamma } = body;
  return { file: await writeOptions(t, discover(t, "eigen", settings(body)), { method: "eigen", operator, gamma, source: "studio" }) };
}

function findDistance({ n, next, start, goal }) {
  const depth = new Float64Array(n).fill(Infinity);
  depth[start] = 0;
  for (const queue = [start]; queue.length;) {
    const u = queue.shift();
    for (let a = 0; a < 4; a++) if (depth[next[4 * u + a]] === Infinity) { depth[next[4 * u + a]] = depth[u] + 1; queue.push(next[4 * u + a]); }
  }
  return depth[goal];
}

// Numbers of options at which to measure: all small ones, then fewer and fewer.
const listCounts = (most) => [...Array.from({ length: most }, (_, i) => i + 1).filter((m) => m < most && (m <= 16 || m % (m <= 32 ? 2 : 4) === 0)), most];

function* measure(body) {
  const [t, chance] = [readMeasurable(body), body.option_chance];
  const sets = Object.fromEntries(Object.keys(METHODS).map((method) => [method, new Walk(t, discover(t, method, settings(body)).policies)]));
  yield { primitive: sets.eigen.time(0) };
  const plan = Object.entries(sets).flatMap(([method, walks]) => listCounts(walks.ways.length).map((n) => [n, method]));
  const { eigen } = sets, all = eigen.ways.length;
  yield { total: plan.length };
  for (const [n, method] of plan.sort(([a], [b]) => a - b)) {
    yield { method, n, time: sets[method].time(n, chance) };
    if (method === "eigen" && [2, 4, 8, 16, 32, all].includes(n)) yield { tuned: n, time: Math.min(...[0, 0.01, 0.03, 0.1, 0.3].map((c) => eigen.time(n, c) ?? Infinity)) };
  }
  for (const c of SHOWN_CHANCES) yield { chance: c, time: eigen.time(all, c) };
  const best = eigen.best();
  yield { best: best.chance, time: best.time, uniform: eigen.time(all, null) };
}

function* learn(body) {
  const t = readMaze(body);
  const shortest = findDistance(t);
  if (!Number.isFinite(shortest)) throw new Error("No path leads from the start to the goal: erase a wall between them.");
  const policies = split(discover(t, "eigen", settings(body)), t.n);
  const steps = Math.max(100, 5 * shortest);
  yield { episodes: EPISODES, max_steps: steps, shortest, n: policies.length };
  const agents = { primitive: [[], null], options: [policies, body.option_chance] };
  const totals = { primitive: new Float64Array(EPISODES), options: new Float64Array(EPISODES) };
  const rand = random(body.seed);
  for (let update = 1; update <= UPDATES; update++) {
    const runs = update * RUNS_PER_UPDATE;
    for (const [method, [chosen, chance]] of Object.entries(agents)) {
      for (let r = 0; r < RUNS_PER_UPDATE; r++) {
        runQLearning(t, chosen, chance, { episodes: EPISODES, steps, rand }).forEach((x, i) => { totals[method][i] += x; });
      }
      yield { method, runs, ...computeInterval(Array.from(totals[method], (x) => x / runs), runs) };
    }
  }
}

// Mean returns and Wilson's 95 % interval for a proportion.
function computeInterval(mean, n) {
  const z = 1.959964;
  const centre = (p) => (p + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const half = (p) => (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return { mean, low: mean.map((p) => Math.max(Math.min(centre(p) - half(p), p), 0)), high: mean.map((p) => Math.min(Math.max(centre(p) + half(p), p), 1)) };
}

function randomMaze({ kind, rows, cols, seed }) {
  const rand = random(seed);
  const pick = (many) => Math.floor(many * rand());
  const grid = { rooms: drawRooms, corridors: drawCorridors }[kind](rows, cols, pick);
  const free = grid.flatMap((row, y) => row.flatMap((c, x) => (c === "." ? [[y, x]] : [])));
  const far = (score) => free.reduce((best, cell) => (score(cell) > score(best) ? cell : best));
  const [[a, b], [c, d]] = [far(([y, x]) => y - x), far(([y, x]) => x - y)];
  if (free.length > 1) { grid[a][b] = "S"; grid[c][d] = "G"; }
  return { map: read(grid.map((row) => row.join("")).join("\n")) };
}

// Rooms of a random size, of which at least two and at most six fit along the shorter side.
function drawRooms(rows, cols, pick) {
  const short = Math.min(rows, cols);
  const sizes = [3, 4, 5, 6, 7, 8, 9].filter((s) => 2 * (s + 1) < short && Math.floor((short - 1) / (s + 1)) <= 6);
  const size = sizes.length ? sizes[pick(sizes.length)] : Math.max(Math.min(short - 2, 9), 1);
  const step = size + 1;
  const [down, across] = [rows, cols].map((n) => Math.max(Math.floor((n - 1) / step), 1));
  const grid = Array.from({ length: down * step + 1 }, (_, y) => Array.from({ length: across * step + 1 }, (__, x) => (y % step && x % step ? "." : "#")));
  for (let y = 0; y < down; y++) for (let x = 1; x < across; x++) grid[y * step + 1 + pick(size)][x * step] = ".";
  for (let y = 1; y < down; y++) for (let x = 0; x < across; x++) grid[y * step][x * step + 1 + pick(size)] = ".";
  return grid;
}

// Corridors that form a random spanning tree of crossings.
function drawCorridors(rows, cols, pick) {
  const [down, across] = [rows, cols].map((n) => Math.max(Math.floor((n - 1) / 2), 1));
  const root = Array.from({ length: down * across }, (_, i) => i);
  const find = (i) => { while (root[i] !== i) i = root[i] = root[root[i]]; return i; };
  const edges = root.flatMap((i) => [...((i + 1) % across ? [[i, i + 1]] : []), ...(i + across < root.length ? [[i, i + across]] : [])]);
  for (let i = edges.length - 1; i > 0; i--) { const j = pick(i + 1); [edges[i], edges[j]] = [edges[j], edges[i]]; }
  const grid = Array.from({ length: 2 * down + 1 }, (_, y) => Array.from({ length: 2 * across + 1 }, (__, x) => (y % 2 && x % 2 ? "." : "#")));
  for (const [a, b] of edges) {
    if (find(a) === find(b)) continue;
    root[find(a)] = find(b);
    grid[Math.floor(a / across) + Math.floor(b / across) + 1][(a % across) + (b % across) + 1] = ".";
  }
  return grid;
}

export const ANSWERS = { picture, options, random: randomMaze, maze: ({ map }) => ({ map: read(map) }) };
export const STREAMS = { measure, learn };

// In a worker: {path, body} in; events, then {done} or {error} out.
if (typeof WorkerGlobalScope !== "undefined") {
  self.addEventListener("message", async ({ data: { path, body } }) => {
    try {
      for (const event of ANSWERS[path] ? [await ANSWERS[path](body)] : STREAMS[path](body)) self.postMessage({ event });
      self.postMessage({ done: true });
    } catch (error) {
      self.postMessage({ error: error.message });
    }
  });
}
