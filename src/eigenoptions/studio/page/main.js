// State of the page: the maze and the settings, the views that are notified of changes, and the address that stores them.

import { ask } from "./client.js";
import { LIMITS } from "./engine.js";
import { Maze, History } from "./maze.js";
import { OPERATORS } from "./model.js";
import * as board from "./board.js";
import * as skills from "./skills.js";
import * as measure from "./measure.js";
import * as learn from "./learn.js";
import * as take from "./take.js";

const $ = (id) => document.getElementById(id);
const MARKS = { S: "start", G: "goal" };
const VIEWS = { skills, measure, learn, take };

const studio = {
  maze: null, name: null, picture: null, mazes: [], limits: LIMITS,
  operator: "normalized", gamma: 0.9, many: 32, chance: null, shown: 16, seed: 0,
  number: 2, sign: "+", layer: "vector", tool: "run", tab: "skills",
  history: new History(),

  // Fields of requests.
  get map() { return { map: this.maze.text }; },
  get skills() { return { ...this.map, operator: this.operator, gamma: this.gamma, n_options: this.many, option_chance: this.chance, seed: this.seed }; },

  // Why there is no task to solve in this maze, or nothing.
  get untasked() {
    const none = Object.keys(MARKS).filter((letter) => !this.maze.cells.includes(letter));
    return none.length ? `This maze has no ${none.map((letter) => `${MARKS[letter]} (${letter})`).join(" and no ")}: place ${none.length > 1 ? "them" : "it"} first.` : "";
  },

  say(text) { $("message").textContent = text; },

  // The chosen option, or null before the first picture.
  get option() {
    const p = this.picture;
    if (!p) return null;
    const index = Math.min(Math.max(this.number - 1 - p.pieces, 0), p.eigenvalues.length - 1);
    const which = 2 * index + (this.sign === "-" ? 1 : 0);
    const part = (array, i) => array.subarray(i * p.states, (i + 1) * p.states);
    const elsewhere = (s) => p.components !== null && !p.leads[index].has(p.components[s]);
    return {
      index, sign: this.sign === "-" ? -1 : 1, label: p.labels[which].replace("-", "−"), eigenvalue: p.eigenvalues[index],
      vector: part(p.vectors, index), policy: part(p.policies, which), value: part(p.values, which), length: p.mean_length[which],
      elsewhere, away: p.components === null ? 0 : p.components.reduce((n, c) => n + !p.leads[index].has(c), 0),
    };
  },

  // Use another maze: draw it and request its picture.
  replace(maze, { keep = true } = {}) {
    if (keep && this.maze) this.history.keep(this.maze);
    this.maze = maze;
    this.edited();
  },

  edited({ soon = false } = {}) {
    const text = this.maze.text;
    this.name = this.mazes.find((m) => m.map.join("\n") === text)?.name ?? null;
    controls();
    board.stop();
    board.draw();
    if (soon) throttled();
    else picture();
    notify("changed");
    remember();
  },

  choose(change) {
    Object.assign(this, change);
    controls();
    board.stop();
    skills.chosen();
    board.draw();
    remember();
  },
};

function notify(what) {
  for (const [name, view] of Object.entries(VIEWS)) view[what]?.(name === studio.tab);
}

let waiting = null;
let trouble = ""; // an error in the address, shown once there is a picture
function throttled() {
  waiting ??= setTimeout(() => { waiting = null; picture(); }, 50);
}

// Components in which an eigenvector is not zero: only there its option leads anywhere.
function findReached({ vectors, components, states }, index) {
  const vector = vectors.subarray(index * states, (index + 1) * states);
  const peak = vector.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
  return new Set(components.filter((_, s) => Math.abs(vector[s]) > 1e-6 * peak));
}

async function picture() {
  clearTimeout(waiting);
  waiting = null;
  const { maze } = studio;
  const numbers = maze.numbers();
  const shown = Math.min(Math.max(studio.shown, studio.many / 2), studio.limits.shown);
  try {
    const found = await ask("picture", "picture", { ...studio.skills, shown });
    if (!found) return;
    studio.picture = { ...found, numbers, rows: maze.rows, cols: maze.cols };
    studio.picture.leads = found.components ? found.eigenvalues.map((_, i) => findReached(studio.picture, i)) : [];
    studio.say(trouble);
    trouble = "";
    $("states").textContent = `${found.states} states${found.pieces > 1 ? `, ${found.pieces} components` : ""}`;
    $("timing").textContent = `computed in ${found.duration.toFixed(0)} ms`;
    skills.arrived();
    board.draw();
    document.documentElement.dataset.ready = Number(document.documentElement.dataset.ready ?? 0) + 1;
  } catch (error) {
    studio.picture = null;
    $("states").textContent = "";
    $("timing").textContent = "";
    studio.say(error.message);
    skills.arrived();
    board.draw();
  }
}
studio.setChance = (chance) => { studio.chance = chance; controls(); notify("changed"); remember(); };
studio.refresh = () => { notify("changed"); picture(); remember(); };

function controls() {
  const { maze } = studio;
  $("builtin").value = studio.name ?? "";
  $("rows").value = maze.rows;
  $("cols").value = maze.cols;
  $("undo").disabled = !studio.history.past.length;
  $("redo").disabled = !studio.history.future.length;
  $("operator").value = studio.operator;
  $("gamma").value = studio.gamma;
  $("gamma-out").textContent = studio.gamma.toFixed(2);
  $("many").value = studio.many;
  $("many-out").textContent = studio.many;
  $("chance").value = studio.chance ?? 0;
  $("chance-out").textContent = studio.chance === null ? "uniform" : studio.chance.toFixed(2);
  for (const [group, key] of [["tools", "tool"], ["signs", "sign"], ["layers", "layer"]]) {
    for (const button of $(group).children) {
      const on = button.dataset[key] === studio[key];
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
  }
  $("board").classList.toggle("drawing", studio.tool !== "run");
}

// The address holds everything that is needed to restore the view.
function remember() {
  const words = new URLSearchParams();
  words.set("m", studio.name ?? studio.maze.code);
  if (studio.operator !== "normalized") words.set("o", studio.operator);
  if (studio.gamma !== 0.9) words.set("g", studio.gamma);
  if (studio.many !== 32) words.set("n", studio.many);
  if (studio.chance !== null) words.set("c", studio.chance);
  if (studio.number !== 2 || studio.sign !== "+") words.set("e", `${studio.number}${studio.sign === "-" ? "-" : ""}`);
  if (studio.tab !== "skills") words.set("t", studio.tab);
  history.replaceState(null, "", `#${words}`);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const code = words.get("m");
  if (code) {
    const named = studio.mazes.find((m) => m.name === code);
    try {
      studio.maze = named ? new Maze(named.map) : Maze.decode(code, studio.limits.cells);
    } catch (error) {
      trouble = error.message;
    }
  }
  if (Object.hasOwn(OPERATORS, words.get("o") ?? "")) studio.operator = words.get("o");
  const within = (word, low, high, old) => (words.has(word) && Number(words.get(word)) >= low && Number(words.get(word)) <= high ? Number(words.get(word)) : old);
  studio.gamma = within("g", 0, 0.999, studio.gamma);
  studio.many = Math.round(within("n", 1, 64, studio.many));
  studio.chance = within("c", 0.001, 0.999, null);
  const e = /^(\d{1,3})(-?)$/.exec(words.get("e") ?? "");
  if (e) [studio.number, studio.sign] = [Number(e[1]), e[2] || "+"];
  const tab = words.get("t") ?? "skills";
  return Object.hasOwn(VIEWS, tab) ? tab : "skills";
}

function open(tab, focus = false) {
  studio.tab = tab;
  for (const button of document.querySelectorAll("[role=tab]")) {
    const on = button.id === `tab-${tab}`;
    button.setAttribute("aria-selected", on);
    button.tabIndex = on ? 0 : -1;
    $(button.getAttribute("aria-controls")).hidden = !on;
    if (on) button.parentElement.scrollLeft = button.offsetLeft - (button.parentElement.clientWidth - button.offsetWidth) / 2;
    if (on && focus) button.focus();
  }
  $("chance").parentElement.hidden = ["skills", "take"].includes(tab);
  for (const [name, view] of Object.entries(VIEWS)) view.shown?.(name === tab);
}

// Use the maze in a text; why it cannot be used, or nothing.
async function readText(text) {
  try {
    const found = await ask("maze", "maze", { map: text });
    if (found) studio.replace(new Maze(found.map));
    return "";
  } catch (error) {
    return error.message;
  }
}

export function download(name, data, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export async function copy(text, button) {
  const before = [...button.childNodes];
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => button.replaceChildren(...before), 1500);
}

function redraw() {
  board.draw();
  skills.arrived();
  notify("redraw");
}

function radio(group, key, pick) {
  $(group).addEventListener("click", (event) => {
    const value = event.target.closest("button")?.dataset[key];
    if (value) pick(value);
  });
  $(group).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...$(group).children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    pick(next.dataset[key]);
  });
}

function wire() {
  radio("tools", "tool", (tool) => { studio.tool = tool; controls(); });
  radio("signs", "sign", (sign) => studio.choose({ sign }));
  radio("layers", "layer", (layer) => studio.choose({ layer }));
  const travel = (way) => {
    const maze = studio.history[way](studio.maze);
    if (maze) studio.replace(maze, { keep: false });
  };
  $("undo").addEventListener("click", () => travel("undo"));
  $("redo").addEventListener("click", () => travel("redo"));
  $("builtin").addEventListener("change", () => {
    const found = studio.mazes.find((m) => m.name === $("builtin").value);
    if (found) studio.replace(new Maze(found.map));
  });
  const size = () => ["rows", "cols"].map((id) => Math.round(Number($(id).value)));
  for (const id of ["rows", "cols"]) {
    $(id).addEventListener("change", () => {
      const [rows, cols] = size();
      if (!(rows >= 1 && cols >= 1 && rows <= studio.limits.cells && cols <= studio.limits.cells)) {
        studio.say(`Rows and columns must be in 1..${studio.limits.cells}.`);
        controls();
      } else studio.replace(studio.maze.resized(rows, cols));
    });
  }
  $("dice").addEventListener("click", async () => {
    const [rows, cols] = size();
    const seed = Math.floor(Math.random() * 2 ** 32);
    try {
      const found = await ask("maze", "random", { kind: $("kind").value, rows: Math.max(rows, 3), cols: Math.max(cols, 3), seed });
      if (!found) return;
      studio.replace(new Maze(found.map));
      const { rows: r, cols: c } = studio.maze;
      if (r !== rows || c !== cols) trouble = `${$("kind").value}: ${r} × ${c} is the largest that fits into ${rows} × ${cols}.`;
    } catch (error) { studio.say(error.message); }
  });
  $("paste").addEventListener("click", () => { $("paste-text").value = studio.maze.text; $("paste-error").textContent = ""; $("paste-dialog").showModal(); $("paste-text").select(); });
  $("paste-dialog").addEventListener("submit", async (event) => {
    if (event.submitter?.value !== "ok") return;
    event.preventDefault();
    const wrong = await readText($("paste-text").value);
    $("paste-error").textContent = wrong;
    if (!wrong) $("paste-dialog").close();
  });
  $("help").addEventListener("click", () => $("help-dialog").showModal());
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => {
      button.closest("details").open = false;
      const name = studio.name ?? "maze";
      if (button.dataset.download === "txt") download(`${name}.txt`, `${studio.maze.text}\n`, "text/plain");
      else if (button.dataset.download === "webm") {
        const label = studio.option?.label.replace("−", "-") ?? "";
        board.film().then((film) => download(`${name}-${label}.webm`, film), (error) => studio.say(error.message));
      } else $("board").toBlob((blob) => download(`${name}.png`, blob));
    });
  }
  $("share").addEventListener("click", () => copy(location.href, $("share")));
  $("settings").addEventListener("input", () => {
    studio.operator = $("operator").value;
    studio.gamma = Number($("gamma").value);
    studio.many = Number($("many").value);
    studio.chance = Number($("chance").value) || null;
    controls();
    notify("changed");
    throttled();
    remember();
  });
  const tabs = document.querySelector("[role=tablist]");
  tabs.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) { open(tab.getAttribute("aria-controls")); remember(); }
  });
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...tabs.children];
    const at = all.findIndex((tab) => tab.id === `tab-${studio.tab}`);
    open(all[(at + step + all.length) % all.length].getAttribute("aria-controls"), true);
    remember();
  });
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && (key === "z" || key === "y")) {
      event.preventDefault();
      travel(key === "y" || event.shiftKey ? "redo" : "undo");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tool = { r: "run", w: "wall", e: "free" }[key];
    if (tool) { studio.tool = tool; controls(); }
    else if (key === "[" || key === "]") skills.step(key === "]" ? 1 : -1);
    else if (key === "+" || key === "-") studio.choose({ sign: key });
    else if (key === "?") $("help-dialog").showModal();
  });
  window.addEventListener("hashchange", () => {
    const before = studio.maze;
    const tab = recall();
    if (studio.maze !== before) studio.history.keep(before);
    studio.edited();
    open(tab);
  });
  window.addEventListener("resize", () => { board.draw(); notify("redraw"); });
}

async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const dress = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
  dress();
  dark.addEventListener("change", () => { dress(); redraw(); });
  const { maze, mazes } = await (await fetch("mazes.json")).json();
  studio.mazes = mazes;
  $("operator").replaceChildren(...Object.keys(OPERATORS).map((name) => new Option(name)));
  $("builtin").replaceChildren(new Option("custom", ""), ...mazes.map(({ name }) => new Option(name.replace("-", " "), name)));
  $("waiting").remove();
  studio.maze = new Maze(maze);
  for (const view of [board, ...Object.values(VIEWS)]) view.setup?.(studio);
  wire();
  const tab = recall();
  studio.tab = "";
  studio.edited();
  open(tab);
  remember();
}

start();
