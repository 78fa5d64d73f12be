// The worker that computes in the page what the server computes with the library: same requests, same answers.
// Answers and events have the fields of `endpoints.py`; arrays are sent as they are.

import { eigh, random } from "./algebra.js";
import { read, spectrum, solve, table, weights } from "./model.js";
import { discover, METHODS } from "./methods.js";
import { learn as run, Walk, walk } from "./walks.js";

// Largest mazes that are computed while the user waits.
export const LIMITS = { cells: 64, shown: 64, options: 128, states: 500, measured: 320 };
const MAX_RACE_STEPS = 4000;
const RACE_CHANCE = 0.1;
const SHOWN_CHANCES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const [UPDATES, RUNS_PER_UPDATE, EPISODES] = [10, 4, 200];
const [SAMPLED_EIGENVECTORS, MAX_SAMPLES, SAMPLING_MS] = [6, 3_000_000, 70];

const rest = (ms) => new Promise((done) => { setTimeout(done, ms); });
const single = (array) => Float32Array.from(array);
const skills = ({ n_options: many, operator, gamma, seed }) => ({ many, operator, gamma, seed });

function tabled(map, most = LIMITS.states) {
  const found = table(read(map));
  if (found.n > most) throw new Error(`the page without a server computes this for at most ${most} states, got ${found.n}: draw a smaller maze, or run eigenoptions studio`);
  return found;
}

function connected({ pieces }, consequence) {
  if (pieces > 1) throw new Error(`the maze has ${pieces} components with no path between them, ${consequence}: erase a wall between them`);
}

function picture({ map, operator, gamma, shown }) {
  const t = tabled(map);
  if (t.pieces === t.n) throw new Error("no free cell has a free neighbour, so there is nowhere to go: erase a wall between two cells");
  const { values, vectors } = spectrum(weights(t), t, operator, shown);
  const k = Math.min(shown, values.length);
  const rows = Array.from({ length: k }, (_, i) => vectors.subarray(i * t.n, (i + 1) * t.n));
  const found = solve(t, rows.flatMap((row) => [row, row.map((x) => -x)]), gamma);
  return {
    states: t.n, pieces: t.pieces, more: k < values.length, eigenvalues: Array.from(values.subarray(0, k)),
    labels: rows.flatMap((_, i) => ["+", "-"].map((sign) => `e${i + 1 + t.pieces}${sign}`)),
    vectors: single(vectors.subarray(0, k * t.n)), policies: found.policies, moves: found.policies, values: single(found.values),
    mean_length: Array.from(found.lengths), components: t.pieces > 1 ? t.component : null,
  };
}

function race(body) {
  const t = tabled(body.map);
  const far = distance(t);
  if (!Number.isFinite(far)) throw new Error("the goal cannot be reached from the start: erase a wall between them");
  const options = discover(t, "eigen", skills(body));
  const walks = new Walk(t, options.policies);
  const chance = body.option_chance ?? RACE_CHANCE;
  const answer = {
    start: t.start, goal: t.goal, labels: options.labels, option_chance: chance,
    ends_at_goal: options.labels.filter((_, o) => walks.policies[o][t.goal] < 0),
    at_start: walks.policies.filter((policy) => policy[t.start] >= 0).length,
  };
  const measured = t.n <= LIMITS.measured && t.pieces === 1;
  const lanes = { primitive: [0, null], uniform: [options.labels.length, null], options: [options.labels.length, chance] };
  Object.entries(lanes).forEach(([name, [m, c]], i) => {
    const lane = walk(t, walks.policies.slice(0, m), c, MAX_RACE_STEPS, random(3 * body.seed + i));
    answer[name] = { ...lane, expected: measured ? walks.steps(m, c)?.[t.start * t.n + t.goal] ?? null : null };
  });
  return answer;
}

function distance({ n, next, start, goal }) {
  const depth = new Float64Array(n).fill(Infinity);
  depth[start] = 0;
  for (const queue = [start]; queue.length;) {
    const u = queue.shift();
    for (let a = 0; a < 4; a++) if (depth[next[4 * u + a]] === Infinity) { depth[next[4 * u + a]] = depth[u] + 1; queue.push(next[4 * u + a]); }
  }
  return depth[goal];
}

// Numbers of options at which to measure: all small ones, then fewer and fewer.
function counts(most) {
  const steps = [...Array.from({ length: 16 }, (_, i) => i + 1), ...Array.from({ length: 8 }, (_, i) => 18 + 2 * i), ...Array.from({ length: 24 }, (_, i) => 36 + 4 * i)];
  return [...steps.filter((m) => m < most), most];
}

// Mean steps to each state from the others.
function reach({ n }, H) {
  const mean = new Float32Array(n).fill(H ? 0 : 3e38);
  for (let s = 0; H && s < n; s++) for (let g = 0; g < n; g++) mean[g] += H[s * n + g] / (n - 1);
  return mean;
}

function* measure(body) {
  const t = tabled(body.map, LIMITS.measured);
  connected(t, "so the diffusion time is infinite");
  const chance = body.option_chance;
  const sets = {};
  for (const method of Object.keys(METHODS)) {
    yield { discovering: method };
    try {
      sets[method] = new Walk(t, discover(t, method, skills(body)).policies);
    } catch (error) {
      yield { method, error: error.message };
    }
    if (method === "eigen") {
      const H = sets.eigen.steps(0);
      yield { primitive: H.reduce((a, b) => a + b, 0) / (t.n * (t.n - 1)), reach: reach(t, H) };
    }
  }
  const plan = Object.entries(sets).flatMap(([method, walks]) => counts(walks.ways.length).map((n) => [n, method]));
  yield { total: plan.length };
  for (const [n, method] of plan.sort(([a], [b]) => a - b)) yield { method, n, time: sets[method].time(n, chance) };
  const { eigen } = sets;
  const all = eigen.ways.length;
  yield { reach_with: reach(t, eigen.steps(all, chance)), n: all };
  for (const c of SHOWN_CHANCES) yield { chance: c, time: eigen.time(all, c) };
  const best = eigen.best();
  yield { best: best.chance, time: best.time, uniform: eigen.time(all, null) };
}

function* compare(body) {
  const t = tabled(body.map);
  const found = discover(t, body.method, skills(body));
  yield {
    summary: METHODS[body.method].summary, labels: found.labels, policies: found.policies, values: single(found.values),
    mean_length: Array.from(found.lengths),
  };
  tabled(body.map, LIMITS.measured);
  connected(t, "so the diffusion time is infinite");
  const walks = new Walk(t, found.policies);
  for (const n of [0, ...counts(found.labels.length)]) yield { n, time: walks.time(n, n ? body.option_chance : null) };
}

function* learn(body) {
  const t = tabled(body.map);
  const shortest = distance(t);
  if (!Number.isFinite(shortest)) throw new Error("no path leads from the start to the goal: erase a wall between them");
  const found = discover(t, "eigen", skills(body));
  const policies = found.labels.map((_, o) => found.policies.subarray(o * t.n, (o + 1) * t.n));
  const steps = Math.max(100, 5 * shortest);
  yield { episodes: EPISODES, max_steps: steps, shortest, n: policies.length };
  const totals = { primitive: new Float64Array(EPISODES), options: new Float64Array(EPISODES) };
  const rand = random(body.seed);
  for (let update = 1; update <= UPDATES; update++) {
    const runs = update * RUNS_PER_UPDATE;
    for (const [method, total] of Object.entries(totals)) {
      for (let r = 0; r < RUNS_PER_UPDATE; r++) {
        const chosen = method === "options" ? policies : [];
        run(t, chosen, chosen.length ? body.option_chance : null, { episodes: EPISODES, steps, rand }).forEach((x, i) => { total[i] += x; });
      }
      yield { method, runs, ...wilson(Array.from(total, (x) => x / runs), runs) };
    }
  }
}

// Mean returns and Wilson's 95 % interval for a proportion.
function wilson(mean, n) {
  const z = 1.959964;
  const centre = (p) => (p + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const half = (p) => (z / (1 + (z * z) / n)) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return { mean, low: mean.map((p) => Math.max(Math.min(centre(p) - half(p), p), 0)), high: mean.map((p) => Math.min(Math.max(centre(p) + half(p), p), 1)) };
}

async function* sample({ map, seed }) {
  const t = tabled(map, LIMITS.measured);
  connected(t, "and a walk sees only one");
  const { n, next } = t;
  const W = weights(t);
  const shown = Math.min(SAMPLED_EIGENVECTORS, n - 1);
  const exact = spectrum(W, t, "combinatorial", shown);
  const transitions = W.reduce((a, b) => a + b, 0);
  yield { states: n, transitions, eigenvalues: Array.from(exact.values.subarray(0, shown)), exact: single(exact.vectors.subarray(0, shown * n)) };
  const rand = random(seed);
  const G = new Float64Array(n * n);
  const known = new Set();
  let [here, steps, walked] = [t.start ?? 0, 12, 0];
  while (known.size < transitions && walked < MAX_SAMPLES) {
    const began = performance.now();
    const fresh = [];
    for (let i = 0; i < Math.floor(steps); i++, walked++) {
      const to = next[4 * here + Math.floor(4 * rand())];
      if (to !== here && !known.has(here * n + to)) {
        known.add(here * n + to);
        fresh.push(here, to);
        G[here * n + here]++;
        G[to * n + to]++;
        G[here * n + to]--;
        G[to * n + here]--;
      }
      here = to;
    }
    yield { steps: walked, rows: known.size, new: fresh, ...sampled(G, n, exact, shown) };
    steps *= 1.22;
    await rest(Math.max(0, SAMPLING_MS - (performance.now() - began)));
  }
  yield { done: known.size === transitions };
}

// T'T and its first eigenvectors over the states seen, and the share of each that lies in the exact eigenspace.
function sampled(G, n, exact, shown) {
  const entries = [];
  for (let i = 0; i < n * n; i++) if (G[i]) entries.push(i);
  const gram = Int16Array.from([...entries.map((i) => Math.floor(i / n)), ...entries.map((i) => i % n), ...entries.map((i) => G[i])]);
  const seen = Array.from({ length: n }, (_, s) => s).filter((s) => G[s * n + s]);
  if (seen.length <= shown) return { gram, vectors: null, agreement: Array(shown).fill(0) };
  const m = seen.length;
  const part = new Float64Array(m * m);
  seen.forEach((s, i) => seen.forEach((u, j) => { part[i * m + j] = G[s * n + u]; }));
  const { vectors: found } = eigh(part, m);
  const vectors = new Float32Array(shown * n);
  const agreement = Array.from({ length: shown }, (_, j) => {
    const full = new Float64Array(n);
    seen.forEach((s, i) => { full[s] = found[(j + 1) * m + i]; });
    const same = exact.values.reduce((list, v, k) => (Math.abs(v - exact.values[j]) <= 1e-9 * exact.values[j] ? [...list, k] : list), []);
    const parts = same.map((k) => full.reduce((sum, x, s) => sum + x * exact.vectors[k * n + s], 0));
    // The sign of a sampled vector is arbitrary: show that of the exact one.
    const sign = parts[same.indexOf(j)] < 0 ? -1 : 1;
    vectors.set(full.map((x) => sign * x), j * n);
    return Math.min(Math.round(1e4 * Math.hypot(...parts)) / 1e4, 1);
  });
  return { gram, vectors, agreement };
}

function randomMap({ kind, rows, cols, seed }) {
  const rand = random(seed);
  const pick = (many) => Math.floor(many * rand());
  const built = { rooms, perfect, open: (r, c) => Array.from({ length: r }, () => Array(c).fill(".")) }[kind](rows, cols, pick);
  const free = built.flatMap((row, y) => row.flatMap((c, x) => (c === "." ? [[y, x]] : [])));
  const far = (score) => free.reduce((best, cell) => (score(cell) > score(best) ? cell : best));
  const [[a, b], [c, d]] = [far(([y, x]) => y - x), far(([y, x]) => x - y)];
  if (free.length > 1) { built[a][b] = "S"; built[c][d] = "G"; }
  return { map: read(built.map((row) => row.join("")).join("\n")) };
}

// Rooms of a random size, of which at least two and at most six fit along the shorter side.
function rooms(rows, cols, pick) {
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
function perfect(rows, cols, pick) {
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

export const ANSWERS = { picture, race, random: randomMap, maze: ({ map }) => ({ map: read(map) }) };
export const STREAMS = { measure, compare, learn, sample };

// In a worker: {path, body} in; events, then {done} or {error} out.
if (typeof WorkerGlobalScope !== "undefined") {
  self.addEventListener("message", async ({ data: { path, body } }) => {
    try {
      if (ANSWERS[path]) self.postMessage({ event: ANSWERS[path](body) });
      else for await (const event of STREAMS[path](body)) self.postMessage({ event });
      self.postMessage({ done: true });
    } catch (error) {
      self.postMessage({ error: error.message });
    }
  });
}
