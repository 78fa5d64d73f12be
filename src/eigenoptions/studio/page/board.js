// The large maze: drawing on it, the numbers under the pointer, and options that run on it step by step.

import { scene, diverging, sequential, scaleBar } from "./paint.js";

const $ = (id) => document.getElementById(id);
const canvas = $("board");
const LETTER = { wall: "#", free: ".", start: "S", goal: "G" };
const WAY = ["up ↑", "right →", "down ↓", "left ←"];
let studio;
let cursor = null; // cell under the keyboard
let run = null; // {path, step, walker, timer}
let stroke = null;

export function setup(given) {
  studio = given;
  canvas.addEventListener("pointerdown", press);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { if (!stroke && !running()) read(cursor); });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("keydown", key);
  canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) { cursor ??= firstFree(); read(cursor); draw(); } });
  canvas.addEventListener("blur", () => { cursor = null; draw(); });
}

const running = () => Boolean(run && !run.ended);
const firstFree = () => Math.max(studio.maze.cells.findIndex((_, i) => studio.maze.free(i)), 0);

// State of a cell in the picture at hand, or -1: while a new picture is computed, the old one is shown.
function state(cell) {
  const { picture, maze } = studio;
  if (!picture || picture.rows !== maze.rows || picture.cols !== maze.cols || !maze.free(cell)) return -1;
  return picture.numbers[cell];
}

function look() {
  const { option, layer } = studio;
  if (!option) return {};
  const peak = option.vector.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
  const top = option.value.reduce((most, x) => Math.max(most, x), 1e-30);
  const colors = {
    vector: (s) => diverging((option.sign * option.vector[s]) / peak),
    value: (s) => sequential((0.85 * option.value[s]) / top),
    start: (s) => (option.policy[s] >= 0 ? sequential(0.3) : null),
  };
  const of = (cell, f, none) => { const s = state(cell); return s < 0 || option.elsewhere(s) ? none : f(s); };
  return {
    color: (cell) => of(cell, colors[layer], null),
    action: (cell) => of(cell, (s) => option.policy[s], undefined),
  };
}

export function draw() {
  if (!studio?.maze) return;
  const { maze } = studio;
  const room = Math.max(300, Math.min(window.innerHeight - 404, 580));
  scene(canvas, maze, canvas.parentElement.clientWidth, {
    ...look(), cursor, room, path: run?.path.slice(0, run.step + 1), walker: run?.walker,
  });
  canvas.setAttribute("aria-label", `Maze of ${maze.rows} by ${maze.cols} cells, ${maze.numbers().filter((n) => n >= 0).length} free`);
  const bar = $("scale");
  if (studio.layer === "vector") scaleBar(bar, (x) => diverging(2 * x - 1));
  else if (studio.layer === "value") scaleBar(bar, (x) => sequential(0.85 * x));
  bar.hidden = studio.layer === "start";
}

// The chosen option as a WebM film, from the cell it was last watched from, else from the one it runs longest from.
export async function film() {
  const { maze, option } = studio;
  if (!option) throw new Error("There is no option to film: draw a maze first.");
  const cells = maze.cells.flatMap((_, cell) => (state(cell) < 0 ? [] : [cell]));
  const path = run?.path ?? cells.map(follow).reduce((a, b) => (b.length > a.length ? b : a), [cells[0]]);
  const paper = document.createElement("canvas");
  const stream = paper.captureStream ? (drawFrame(0), paper.captureStream(30)) : null;
  if (!stream || !window.MediaRecorder) throw new Error("This browser cannot record films.");
  const recorder = new MediaRecorder(stream, { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((done) => { recorder.onstop = done; });
  recorder.start();
  // In real time: a quarter of a second per step, or less if the path is long; the ends are shown longer.
  const pause = Math.min(250, 8000 / path.length);
  for (let i = 0; i < path.length; i++) {
    drawFrame(i);
    await new Promise((done) => { setTimeout(done, i === 0 || i === path.length - 1 ? 800 : pause); });
  }
  recorder.stop();
  await ended;
  return new Blob(parts, { type: "video/webm" });

  function drawFrame(i) {
    const side = 480 / (window.devicePixelRatio || 1);
    scene(paper, maze, side, { ...look(), room: side, path: path.slice(0, i + 1), walker: path[i] });
  }
}

function cellAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = Math.floor(((event.clientX - box.left) / box.width) * studio.maze.cols);
  const y = Math.floor(((event.clientY - box.top) / box.height) * studio.maze.rows);
  if (x < 0 || y < 0 || x >= studio.maze.cols || y >= studio.maze.rows) return null;
  return y * studio.maze.cols + x;
}

function press(event) {
  const cell = cellAt(event);
  if (cell === null || event.button > 2) return;
  if (studio.tool === "run" && event.button === 0) {
    start(cell);
    return;
  }
  event.preventDefault();
  canvas.setPointerCapture(event.pointerId);
  studio.history.keep(studio.maze);
  stroke = { letter: event.button ? "." : LETTER[studio.tool], last: cell };
  paint([cell]);
}

function move(event) {
  const cell = cellAt(event);
  if (!stroke) {
    if (!running() && cell !== null) read(cell);
    return;
  }
  if (cell === null || cell === stroke.last) return;
  paint("SG".includes(stroke.letter) ? [cell] : between(stroke.last, cell));
  stroke.last = cell;
}

function release() {
  if (!stroke) return;
  stroke = null;
  studio.edited();
}

// Cells on the line from one to another, so that a fast stroke has no holes.
function between(a, b) {
  const { cols } = studio.maze;
  const [x0, y0, x1, y1] = [a % cols, Math.floor(a / cols), b % cols, Math.floor(b / cols)];
  const n = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0), 1);
  return Array.from({ length: n + 1 }, (_, i) => Math.round(y0 + ((y1 - y0) * i) / n) * cols + Math.round(x0 + ((x1 - x0) * i) / n));
}

function paint(cells) {
  for (const cell of cells) studio.maze.set(cell, stroke.letter);
  studio.edited({ soon: true });
}

function edit(cell, letter) {
  studio.history.keep(studio.maze);
  studio.maze.set(cell, letter);
  studio.edited();
  read(cell);
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { maze } = studio;
  cursor ??= firstFree();
  const step = { ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowDown: [1, 0], ArrowLeft: [0, -1] }[event.key];
  if (step) {
    const y = Math.min(Math.max(Math.floor(cursor / maze.cols) + step[0], 0), maze.rows - 1);
    const x = Math.min(Math.max((cursor % maze.cols) + step[1], 0), maze.cols - 1);
    cursor = y * maze.cols + x;
    stop();
    read(cursor);
    draw();
  } else if (event.key === " ") edit(cursor, maze.free(cursor) ? "#" : ".");
  else if (event.key === "Enter") start(cursor);
  else if (event.key.toLowerCase() === "s") edit(cursor, "S");
  else if (event.key.toLowerCase() === "g") edit(cursor, "G");
  else return;
  event.preventDefault();
}

// Cells an option passes from a cell to where it stops.
export function follow(cell) {
  const { option, maze } = studio;
  const path = [cell];
  for (let n = 0; option && n <= maze.cells.length; n++) {
    const s = state(path.at(-1));
    if (s < 0 || option.policy[s] < 0) break;
    path.push(maze.next(path.at(-1), option.policy[s]));
  }
  return path;
}

// A cell as the library writes it: (row, column), from 0.
const at = (cell) => `(${Math.floor(cell / studio.maze.cols)}, ${cell % studio.maze.cols})`;

function words(cell) {
  const { maze, option } = studio;
  const place = at(cell);
  if (!maze.free(cell)) return `${place} · wall`;
  const s = state(cell);
  if (s < 0 || !option) return place;
  if (option.elsewhere(s)) return `${place} · state ${s} · another component: ${option.label} does not lead here`;
  const does = option.policy[s] < 0 ? "stops here" : `goes ${WAY[option.policy[s]]}, stops in ${follow(cell).length - 1}`;
  const e = option.sign * option.vector[s];
  return `${place} · state ${s} · e = ${e < 0 ? "−" : ""}${Math.abs(e).toFixed(4)} · value ${option.value[s].toFixed(4)} · ${does}`;
}

function read(cell) {
  $("readout").textContent = cell === null || cell === undefined ? "Point at a cell for its numbers." : words(cell);
}

export function stop() {
  if (!run) return;
  cancelAnimationFrame(run.timer);
  run = null;
  delete canvas.dataset.run;
}

function start(cell) {
  stop();
  const { maze, option } = studio;
  if (!maze.free(cell) || state(cell) < 0 || !option) {
    read(cell);
    return;
  }
  const path = follow(cell);
  const total = path.length - 1;
  const pace = Math.min(150, 5000 / Math.max(total, 1));
  run = { path, step: 0, walker: cell, timer: 0 };
  canvas.dataset.run = "running";
  const end = () => {
    Object.assign(run, { step: total, walker: path[total], ended: true });
    canvas.dataset.run = `stopped at ${path[total]} after ${total}`;
    $("readout").textContent = total
      ? `${option.label} stopped after ${total} step${total > 1 ? "s" : ""} at ${at(path[total])}`
      : `${option.label} may not start at ${at(cell)}: ${option.elsewhere(state(cell)) ? "it belongs to another component" : "nothing is left to climb"}`;
    draw();
  };
  if (!total || matchMedia("(prefers-reduced-motion: reduce)").matches) {
    end();
    return;
  }
  const began = performance.now();
  const frame = (now) => {
    // At most one step per frame, so that every step is shown even where frames are late.
    const gone = Math.min(Math.max(0, now - began) / pace, run.step + 1);
    if (gone >= total) {
      end();
      return;
    }
    const [i, part] = [Math.floor(gone), gone % 1];
    if (i !== run.step || i === 0) $("readout").textContent = `step ${i} of ${total}`;
    const xy = (c) => [c % maze.cols, Math.floor(c / maze.cols)];
    const [[x0, y0], [x1, y1]] = [xy(path[i]), xy(path[i + 1])];
    const ease = part * part * (3 - 2 * part);
    Object.assign(run, { step: i, walker: [x0 + (x1 - x0) * ease, y0 + (y1 - y0) * ease] });
    draw();
    run.timer = requestAnimationFrame(frame);
  };
  run.timer = requestAnimationFrame(frame);
}
