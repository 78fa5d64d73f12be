// Two discovery methods side by side: their options, and their diffusion times as the options are added.

import { stream, cancel, floats, actions } from "./api.js";
import { chart, human } from "./chart.js";
import { scene, sequential, theme, thumb } from "./paint.js";
import { byName, named } from "./measure.js";

const $ = (id) => document.getElementById(id);
const DASHES = ["", "7 4"];
let studio;
let stale = true;
let timer = null;
let maze = null;
let numbers = null;
// One per side: {method, head, points, chosen, wrong}
const sides = [null, null];

export function setup(given) {
  studio = given;
  for (const i of [0, 1]) {
    const select = $(`method-${i}`);
    select.replaceChildren(...byName(studio).map((name) => new Option(named(name), name)));
    select.value = i && studio.methods.includes("bottleneck") ? "bottleneck" : "eigen";
    select.addEventListener("change", () => work(i));
    $(`method-${i}-list`).addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      sides[i].chosen = Number(button.dataset.index);
      drawSide(i);
    });
  }
}

export function changed(visible) {
  stale = true;
  clearTimeout(timer);
  if (visible) timer = setTimeout(both, 150);
  else for (const i of [0, 1]) cancel(`compare-${i}`);
}

export function shown(visible) {
  if (visible && stale) both();
  else redraw(visible);
}

export function redraw(visible) {
  if (!visible || !maze) return;
  for (const i of [0, 1]) drawSide(i, true);
  drawChart();
}

function both() {
  stale = false;
  for (const i of [0, 1]) work(i);
}

async function work(i) {
  maze = studio.maze.copy();
  numbers = maze.numbers();
  const mine = sides[i] = { method: $(`method-${i}`).value, head: null, points: [], chosen: 0, wrong: "", done: false };
  $("compare").dataset.state = "running";
  drawSide(i, true);
  drawChart();
  try {
    const whole = await stream(`compare-${i}`, "api/compare", { ...studio.skills, method: mine.method }, (event) => {
      if (sides[i] !== mine) return;
      if (event.policies) {
        mine.head = { ...event, policies: actions(event.policies), values: floats(event.values) };
        drawSide(i, true);
      } else {
        mine.points.push([event.n, event.time ?? Infinity]);
        requestAnimationFrame(drawChart);
      }
    });
    if (!whole) return;
  } catch (error) {
    if (sides[i] !== mine) return;
    mine.wrong = error.message;
  }
  mine.done = true;
  drawSide(i);
  drawChart();
  if (sides.every((side) => side?.done)) $("compare").dataset.state = "done";
}

// Policy and value of an option of a side.
function part({ head }, index) {
  const n = head.policies.length / head.labels.length;
  const of = (array) => array.subarray(index * n, (index + 1) * n);
  const [policy, value] = [of(head.policies), of(head.values)];
  const inside = value.filter((_, s) => policy[s] >= 0);
  const low = Math.min(...inside);
  const span = Math.max(...inside) - low || 1;
  return { policy, shade: (s) => sequential(policy[s] < 0 ? 0 : 0.1 + (0.75 * (value[s] - low)) / span) };
}

// States in which an option stops.
function endsOf(policy) {
  const ends = new Set();
  numbers.forEach((s, cell) => {
    if (s < 0 || policy[s] < 0) return;
    const to = numbers[maze.next(cell, policy[s])];
    if (policy[to] < 0) ends.add(to);
  });
  return ends;
}

function drawSide(i, whole = false) {
  const side = sides[i];
  const list = $(`method-${i}-list`);
  const canvas = $(`method-${i}-map`);
  const width = canvas.parentElement.clientWidth;
  if (!side || !width) return;
  if (whole) list.replaceChildren();
  if (!side.head) {
    scene(canvas, maze, width, { room: 360 });
    $(`method-${i}-note`).textContent = side.wrong || "discovering…";
    return;
  }
  const { labels, mean_length: lengths, summary } = side.head;
  if (whole) {
    labels.forEach((label, index) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      const name = document.createElement("b");
      button.type = "button";
      button.dataset.index = index;
      name.textContent = label.replace("-", "−");
      const small = document.createElement("canvas");
      thumb(small, maze, numbers, part(side, index).shade);
      button.append(small, name);
      button.setAttribute("aria-label", `Option ${label}`);
      item.append(button);
      list.append(item);
    });
  }
  [...list.children].forEach(({ firstChild: button }, index) => button.setAttribute("aria-pressed", index === side.chosen));
  const { policy, shade } = part(side, side.chosen);
  const ends = endsOf(policy);
  const starts = policy.reduce((n, a) => n + (a >= 0), 0);
  // Where the option neither runs nor stops the cell stays blank.
  const used = (cell) => policy[numbers[cell]] >= 0 || ends.has(numbers[cell]);
  scene(canvas, maze, width, {
    room: 360, color: (cell) => (used(cell) ? shade(numbers[cell]) : null), action: (cell) => (used(cell) ? policy[numbers[cell]] : undefined),
  });
  $(`method-${i}-note`).textContent = `${labels.length} option${labels.length > 1 ? "s" : ""}: ${summary}. ${labels[side.chosen].replace("-", "−")} may start in ${starts} of ${policy.length} cells and stops on ${ends.size}, after ${lengths[side.chosen].toFixed(1)} steps on average.`;
}

function drawChart() {
  const colors = theme().series;
  const measured = sides.filter((side) => side?.points.length);
  const wrong = [...new Set(sides.filter((side) => side?.wrong).map((side) => side.wrong))].join(" ");
  $("compare-chart").style.display = measured.length ? "" : "none";
  $("compare-note").textContent = wrong;
  if (!measured.length) return;
  const primitive = measured[0].points[0][1];
  const all = measured.flatMap(({ points }) => points);
  const top = Math.max(...all.map(([, t]) => t).filter(Number.isFinite));
  chart($("compare-chart"), {
    x: { low: 0, high: Math.max(4, ...all.map(([n]) => n)), label: "options added", format: String },
    y: { low: 0.8 * Math.min(...all.map(([, t]) => t)), high: Math.min(1.2 * top, 30 * primitive), log: true },
    rules: [{ y: primitive, name: "moves only" }],
    series: sides.map((side, i) => ({ name: side ? named(side.method) : "", color: colors[i], dash: DASHES[i], points: side?.points ?? [] })),
  });
  const text = sides.filter((side) => side?.done && side.points.length > 1).map(({ method, points }) => {
    const [n, last] = points.at(-1);
    const least = points.slice(1).reduce((a, b) => (b[1] < a[1] ? b : a));
    return `${named(method)}: ${human(last)} steps with ${n} option${n > 1 ? "s" : ""}${least[0] === n ? "" : `, least ${human(least[1])} with ${least[0]}`}.`;
  });
  const how = studio.chance === null ? "Uniform choice over moves and options." : `A decision is for an option with a chance of ${studio.chance}.`;
  $("compare-note").textContent = [`Moves only: ${human(primitive)} steps.`, ...text, how, wrong].join(" ");
  $("compare-chart").setAttribute("aria-label", `Diffusion time as options are added. ${text.join(" ")}`);
}
