// Diffusion time as options are added, and over the chance of an option.

import { stream, cancel } from "./client.js";
import { chart, human } from "./chart.js";
import { theme } from "./paint.js";

const $ = (id) => document.getElementById(id);
const NAMES = { eigen: "eigenoptions", random: "random goals", tuned: "helpful chance" };
const DASHES = { eigen: "", random: "7 4", tuned: "2 3" };
let studio, stale = true, timer = null, found = null;

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
  found = { primitive: null, curves: { eigen: [], random: [], tuned: [] }, chances: [], best: null, done: 0, total: 0 };
  $("curve-note").textContent = "measuring…";
  $("measure").dataset.state = "running";
  draw();
  try {
    const whole = await stream("measure", "measure", studio.skills, take);
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
  if (event.chance) note(`measuring chances: ${found.chances.length + 1}…`);
  else if (event.n) note(`measuring: ${Math.min(++found.done, found.total)} of ${found.total}…`);
  if (event.primitive) found.primitive = event.primitive;
  if (event.chance) found.chances.push([event.chance, event.time ?? Infinity]);
  if (event.best) found.best = event;
  if (event.tuned) found.curves.tuned.push([event.tuned, event.time]);
  if (event.method) found.curves[event.method].push([event.n, event.time ?? Infinity]);
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
      series: Object.keys(curves).map((method, i) => ({ name: NAMES[method], color: colors[i], dash: DASHES[method], points: curves[method].length ? [[0, primitive], ...curves[method]] : [] })),
    });
  }
  drawChances();
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
  const { primitive, curves } = found;
  if (doing && !found.best) {
    $("curve-note").textContent = doing;
    return;
  }
  const [n, last] = curves.eigen.at(-1) ?? [0, primitive];
  const parts = [`Moves only: ${human(primitive)} steps. With ${n} eigenoptions${studio.chance === null ? ", chosen uniformly" : ""}: ${human(last)}, ${last < primitive ? `${(primitive / last).toFixed(1)} times faster` : `${human(last / primitive)} times slower: too few options draw the walk away from most cells. Add options`}.`];
  const tuned = curves.tuned.at(-1)?.[1];
  if (tuned) parts.push(`At a helpful chance: ${human(tuned)}, ${(primitive / tuned).toFixed(1)} times faster than moves only.`);
  const off = Math.max(...Object.values(curves).flat().map(([, t]) => t));
  if (off > primitive * 30) parts.push(`△ marks values beyond the chart, up to ${human(off)}.`);
  $("curve-note").textContent = [...parts, doing].join(" ");
  $("curve").setAttribute("aria-label", `Diffusion time as options are added. ${parts[0]}`);
}
