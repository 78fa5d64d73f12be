// Three random walks side by side: moves only, options chosen uniformly, options chosen with a chance.

import { ask } from "./api.js";
import { human } from "./chart.js";
import { scene, theme } from "./paint.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = [4, 10, 25, 60, 200, 1000]; // steps per second
const LANES = [0, 1, 2];
let studio;
let stale = true;
let lanes = null;
let race = null;
let timer = 0;
let at = 0;
let last = 0;

export function setup(given) {
  studio = given;
  $("race-go").addEventListener("click", toggle);
  $("race-new").addEventListener("click", async () => { studio.seed = (studio.seed + 1) % 2 ** 32; await ready(); if (race) toggle(); });
}

export function changed(visible) {
  stale = true;
  halt();
  if (visible) ready();
}

export function shown(visible) {
  if (!visible) halt();
  else if (stale) ready();
  else draw();
}

export function redraw(visible) { if (visible && race) draw(); }

function halt() {
  cancelAnimationFrame(timer);
  timer = 0;
  $("race-go").textContent = "Start";
}

async function ready() {
  halt();
  stale = false;
  race = null;
  at = 0;
  $("race-note").textContent = "";
  $("race").dataset.state = "waiting";
  $("race-go").disabled = true;
  $("race-why").textContent = "";
  for (const i of LANES) $(`lane-${i}-note`).textContent = "";
  const maze = studio.maze.copy();
  try {
    if (studio.untasked) throw new Error(studio.untasked);
    const found = await ask("race", "api/race", studio.skills);
    if (!found) return;
    const cells = maze.cells.flatMap((c, i) => (c === "#" ? [] : [i]));
    lanes = [found.primitive, found.uniform, found.options].map((lane) => ({
      ...lane, path: lane.path.map((s) => cells[s]), visits: new Uint16Array(maze.cells.length), done: -1,
    }));
    race = { maze, labels: found.labels };
    $("lane-2-what").textContent = `options, chance ${found.option_chance}`;
    $("race-why").textContent = why(found);
    $("race-go").disabled = false;
    $("race").dataset.state = "ready";
  } catch (error) {
    $("race-note").textContent = error.message;
    $("race").dataset.state = "failed";
    race = null;
    lanes = null;
  }
  draw(maze);
}

// Why options help on the way to this goal, or do not.
function why({ primitive, uniform, options, option_chance: chance, ends_at_goal: ends, at_start: many, labels }) {
  if (primitive.expected === null) return "";
  const seldom = `one decision in ${Math.round(1 / chance)}`;
  const stop = ends.length ? `${ends.slice(0, 3).map((label) => label.replace("-", "−")).join(", ")}${ends.length > 3 ? ` and ${ends.length - 3} more` : ""} of the ${labels.length} options stop${ends.length === 1 ? "s" : ""} at G` : `none of the ${labels.length} options stops at G`;
  const parts = [];
  if (uniform.expected > primitive.expected) {
    parts.push(`Why is the uniform choice slower than moves alone? At S ${many} of ${many + 4} choices are options, and ${stop}: before the walk can search around G, the next option carries it away.`);
  } else parts.push(`Options help here even under the uniform choice: ${stop}.`);
  parts.push(options.expected < primitive.expected
    ? `Taken in ${seldom}, options still carry the walk across the maze and leave it time to search where they end.`
    : `Taken in ${seldom}, they do not help on the way to this goal either: try another chance, more options, or another goal.`);
  return parts.join(" ");
}

function toggle() {
  if (!race) return;
  if (timer) { halt(); return; }
  if (at >= longest()) { at = 0; lanes.forEach((lane) => { lane.visits.fill(0); lane.done = -1; }); }
  $("race-note").textContent = "";
  $("race-go").textContent = "Pause";
  $("race").dataset.state = "running";
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) at = longest();
  last = performance.now();
  timer = requestAnimationFrame(frame);
}

const longest = () => Math.max(...lanes.map((lane) => lane.path.length - 1));

function frame(now) {
  at = Math.min(at + (Math.max(0, now - last) / 1000) * SPEEDS[$("race-speed").value], longest());
  last = now;
  draw();
  if (at < longest()) timer = requestAnimationFrame(frame);
  else finish();
}

function finish() {
  halt();
  const ends = lanes.map((lane) => (lane.reached ? lane.path.length - 1 : Infinity));
  const names = ["Moves only", "Options, uniformly chosen,", "Options, seldom chosen,"];
  const first = Math.min(...ends);
  const steps = (n) => (Number.isFinite(n) ? human(n) : `more than ${human(lanes[0].path.length > 1 ? Math.max(...lanes.map((lane) => lane.path.length - 1)) : 0)}`);
  const winner = Number.isFinite(first) ? `${names[ends.indexOf(first)]} won this race` : "No winner";
  $("race-note").textContent = `${winner}: ${ends.map(steps).join(", ")} steps. A single race is random: the expected number of steps for this start and goal is below each maze, and the mean over all pairs is under Measure.`;
  $("race").dataset.state = "finished";
  $("race-go").textContent = "Again";
}

function draw(maze = race?.maze) {
  if (!maze) return;
  const t = theme();
  for (const i of LANES) {
    const lane = lanes?.[i];
    const width = $(`lane-${i}`).parentElement.clientWidth;
    if (!width) continue;
    if (!race || !lane) {
      scene($(`lane-${i}`), maze, width, { room: 460 });
      continue;
    }
    const step = Math.min(Math.floor(at), lane.path.length - 1);
    while (lane.done < step) lane.visits[lane.path[++lane.done]]++;
    const shade = (cell) => {
      const w = lane.visits[cell] ? 0.22 + 0.6 * Math.min(Math.log(lane.visits[cell]) / Math.log(40), 1) : 0;
      const free = t.free.match(/\w\w/g).map((x) => parseInt(x, 16));
      return free.map((c, k) => Math.round(c + (t.visited[k] - c) * w));
    };
    scene($(`lane-${i}`), maze, width, { color: shade, walker: lane.path[step], path: lane.path.slice(Math.max(0, step - 8), step + 1), room: 460 });
    const seen = lane.visits.reduce((n, v) => n + (v > 0), 0);
    $(`lane-${i}-steps`).textContent = `${human(step)} step${step === 1 ? "" : "s"}`;
    const by = lane.by[step];
    const doing = at > 0 && step < lane.path.length - 1 && i ? (by >= 0 ? `follows ${race.labels[by].replace("-", "−")} · ` : "moves · ") : "";
    const expected = lane.expected === null ? "" : ` · expected ${human(lane.expected)}`;
    $(`lane-${i}-note`).textContent = `${doing}${seen} cells seen${expected}`;
  }
}
