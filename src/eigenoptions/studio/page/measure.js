// Diffusion time as options are added, and which cells are hard to reach.

import { stream, cancel, floats } from "./api.js";
import { chart, human } from "./chart.js";
import { scene, sequential, theme } from "./paint.js";

const $ = (id) => document.getElementById(id);
// Names of methods that differ from those of the library.
const NAMES = { eigen: "eigenoptions", random: "random goals" };
// Methods of the paper; the lines of others are faint.
const BASELINES = ["eigen", "bottleneck", "random"];
const DASHES = ["", "7 4", "2 4", "10 3 2 3", "1 3", "12 4"];
let studio;
let stale = true;
let timer = null;
let found = null;

export const named = (method) => NAMES[method] ?? method;

// All methods of the library, eigenoptions first.
export const byName = ({ methods }) => ["eigen", ...methods.filter((name) => name !== "eigen")];
const methods = () => byName(studio);

export function setup(given) {
  studio = given;
  $("use-best").addEventListener("click", () => studio.setChance(Number($("use-best").dataset.chance)));
}

export function changed(visible) {
  stale = true;
  clearTimeout(timer);
  if (visible) timer = setTimeout(work, 120);
  else cancel("measure");
}

export function shown(visible) {
  if (visible && stale) work();
  else if (visible) redraw(true);
}

async function work() {
  stale = false;
  found = { maze: studio.maze.copy(), primitive: null, curves: Object.fromEntries(methods().map((name) => [name, []])), reach: [null, null], without: [], chances: [], best: null, done: 0, total: 0 };
  found.numbers = found.maze.numbers();
  $("curve-note").textContent = "measuring…";
  $("measure").dataset.state = "running";
  draw();
  try {
    const whole = await stream("measure", "api/measure", studio.skills, take);
    if (!whole) return;
    $("measure").dataset.state = "done";
    note();
  } catch (error) {
    $("measure").dataset.state = "failed";
    found = null;
    $("curve-note").textContent = error.message;
  }
}

function take(event) {
  if (!found) return;
  if (event.total) Object.assign(found, { total: event.total, done: 0 });
  if (event.discovering) note(`discovering: ${named(event.discovering)}…`);
  else if (event.chance) note(`measuring chances: ${found.chances.length + 1}…`);
  else if (event.n) note(`measuring: ${Math.min(++found.done, found.total)} of ${found.total}…`);
  if (event.primitive) found.primitive = event.primitive;
  if (event.reach) found.reach[0] = floats(event.reach);
  if (event.reach_with) { found.reach[1] = floats(event.reach_with); found.many = event.n; }
  if (event.chance) found.chances.push([event.chance, event.time ?? Infinity]);
  if (event.best) found.best = event;
  if (event.error) found.without.push(`${named(event.method)}: ${event.error}`);
  else if (event.method) found.curves[event.method].push([event.n, event.time ?? Infinity]);
  requestAnimationFrame(draw);
}

export function redraw(visible) { if (visible && found) draw(); }

function draw() {
  if (!found) return;
  const { primitive, curves } = found;
  const colors = theme().series;
  if (primitive) {
    const all = Object.values(curves).flat().map(([, t]) => t);
    const low = Math.min(primitive, ...all) * 0.8;
    const top = Math.max(...all.filter(Number.isFinite), primitive);
    const high = Math.min(top * 1.2, primitive * 30);
    chart($("curve"), {
      x: { low: 0, high: Math.max(4, ...Object.values(curves).flat().map(([n]) => n), studio.many), label: "options added", format: String },
      y: { low, high, log: true },
      rules: [{ y: primitive, name: "moves only" }],
      series: methods().map((method, i) => ({
        name: named(method), color: colors[i % colors.length], dash: DASHES[i % DASHES.length], faint: !BASELINES.includes(method), points: curves[method].length ? [[0, primitive], ...curves[method]] : [],
      })),
    });
  }
  drawChances();
  const both = found.reach.filter(Boolean);
  let [low, high] = [Infinity, 0];
  for (const map of both) for (const t of map) { low = Math.min(low, t); high = Math.max(high, t); }
  const mean = (map) => map.reduce((a, b) => a + b, 0) / map.length;
  found.reach.forEach((map, i) => {
    const level = (cell) => Math.log(map[found.numbers[cell]] / low) / Math.log(Math.max(high / low, 1.01));
    const width = $(`reach-${i}`).parentElement.clientWidth;
    if (width) scene($(`reach-${i}`), found.maze, width, { color: map ? (cell) => sequential(level(cell)) : null, room: 420, marks: false });
    $(`reach-${i}-mean`).textContent = map ? `${human(mean(map))} steps` : "…";
  });
  $("reach-1-what").textContent = `with ${found.many ?? studio.many} options`;
  $("reach-note").textContent = both.length ? `${human(low)} to ${human(high)} steps from elsewhere, on a logarithmic scale` : "";
}

function drawChances() {
  const { primitive, chances, best, curves } = found;
  $("use-best").hidden = !best;
  $("chances-note").textContent = "";
  if (!chances.length) { $("chances").replaceChildren(); return; }
  const points = best ? [...chances, [best.best, best.time]].sort(([a], [b]) => a - b) : chances;
  const times = points.map(([, t]) => t).filter(Number.isFinite);
  const uniform = best?.uniform ?? (studio.chance === null ? curves.eigen.at(-1)?.[1] : null);
  const high = Math.min(1.2 * Math.max(primitive, ...times), 30 * primitive);
  chart($("chances"), {
    x: { low: 0.005, high: 0.9, log: true, label: "chance of an option", format: String },
    y: { low: 0.8 * Math.min(primitive, uniform ?? primitive, ...times), high, log: true },
    rules: [{ y: primitive, name: "moves only" }, ...(uniform && uniform < high ? [{ y: uniform, name: "uniform choice" }] : [])],
    series: [{ name: "eigenoptions", color: theme().series[0], points }],
  });
  if (!best) return;
  const text = `Best chance ${best.best.toPrecision(2)}: ${human(best.time)} steps, against ${human(best.uniform)} under the uniform choice and ${human(primitive)} with moves only.`;
  $("chances-note").textContent = text;
  $("chances").setAttribute("aria-label", `Diffusion time over the chance of an option. ${text}`);
  $("use-best").dataset.chance = Math.max(Number(best.best.toFixed(2)), 0.01);
  $("use-best").textContent = `Use ${$("use-best").dataset.chance}`;
}

// What has been found, and what is being done.
function note(doing = "") {
  const { primitive, curves, without } = found;
  if (doing && !found.best) {
    $("curve-note").textContent = doing;
    return;
  }
  const [n, last] = curves.eigen.at(-1) ?? [0, primitive];
  const better = last < primitive;
  const parts = [`Moves only: ${human(primitive)} steps. With ${n} eigenoptions: ${human(last)}, ${better ? `${(primitive / last).toFixed(1)} times faster` : `${human(last / primitive)} times slower: too few options draw the walk away from most cells. Add options`}.`];
  const off = Math.max(...Object.values(curves).flat().map(([, t]) => t));
  if (off > primitive * 30) parts.push(`△ marks values beyond the chart, up to ${human(off)}.`);
  for (const reason of without) parts.push(`No options by ${reason}.`);
  $("curve-note").textContent = [...parts, doing].join(" ");
  $("curve").setAttribute("aria-label", `Diffusion time as options are added. ${parts[0]}`);
}
