// State of the page: the maze and the settings, the views that are notified of changes, and the address that stores them.

import { ask, floats, actions, shorts, hello as greeting, serverless } from "./api.js";
import { Maze, History } from "./maze.js";
import { scaleBar, sequential } from "./paint.js";
import * as board from "./board.js";
import * as skills from "./skills.js";
import * as compare from "./compare.js";
import * as measure from "./measure.js";
import * as race from "./race.js";
import * as learn from "./learn.js";
import * as sample from "./sample.js";
import * as take from "./take.js";
import * as atari from "./atari.js";

const $ = (id) => document.getElementById(id);
// Names of the rules of random mazes that differ from those of the library.
const KINDS = { perfect: "corridors", open: "open room" };
const MARKS = { S: "start", G: "goal" };
const VIEWS = { skills, compare, measure, race, learn, sample, take, atari };

const studio = {
  maze: null, name: null, picture: null, mazes: [], operators: [], methods: [], limits: { cells: 64, shown: 64, options: 128, measured: 700 },
  operator: "normalized", gamma: 0.9, many: 32, chance: null, shown: 18, seed: 0,
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
      vector: part(p.vectors, index), policy: part(p.policies, which), moves: part(p.moves, which), value: part(p.values, which), length: p.mean_length[which],
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
function led({ vectors, components, states }, index) {
  const vector = vectors.subarray(index * states, (index + 1) * states);
  const peak = vector.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
  return new Set(components.filter((_, s) => Math.abs(vector[s]) > 1e-6 * peak));
}

// What the last edit took away that some views need.
function removed() {
  const before = studio.history.past.at(-1)?.join("") ?? "";
  const gone = Object.keys(MARKS).filter((letter) => before.includes(letter) && !studio.maze.cells.includes(letter));
  return gone.length ? `The ${gone.map((letter) => MARKS[letter]).join(" and the ")} ${gone.length > 1 ? "are" : "is"} gone: place ${gone.length > 1 ? "others" : "another"} with ${gone.join(" and ")}.` : "";
}

async function picture() {
  clearTimeout(waiting);
  waiting = null;
  const { maze } = studio;
  const numbers = maze.numbers();
  const shown = Math.min(Math.max(studio.shown, studio.many / 2), studio.limits.shown);
  const began = performance.now();
  try {
    const found = await ask("picture", "api/picture", { ...studio.map, operator: studio.operator, gamma: studio.gamma, shown });
    if (!found) return;
    studio.picture = {
      ...found, numbers, rows: maze.rows, cols: maze.cols,
      vectors: floats(found.vectors), policies: actions(found.policies), moves: actions(found.moves), values: floats(found.values),
    };
    studio.picture.components = found.components ? shorts(found.components) : null;
    studio.picture.leads = found.components ? found.eigenvalues.map((_, i) => led(studio.picture, i)) : [];
    studio.say(trouble || removed());
    trouble = "";
    $("states").textContent = `${found.states} states${found.pieces > 1 ? `, ${found.pieces} components` : ""}`;
    $("timing").textContent = `computed in ${found.serverTime.toFixed(0)} ms`;
    $("timing").dataset.server = found.serverTime;
    skills.arrived();
    board.draw();
    $("timing").dataset.picture = (performance.now() - began).toFixed(1);
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
  if (studio.operators.includes(words.get("o"))) studio.operator = words.get("o");
  const within = (word, low, high, old) => (words.has(word) && Number(words.get(word)) >= low && Number(words.get(word)) <= high ? Number(words.get(word)) : old);
  studio.gamma = within("g", 0, 0.999, studio.gamma);
  studio.many = Math.round(within("n", 1, studio.limits.options, studio.many));
  studio.chance = within("c", 0.001, 0.999, null);
  const e = /^(\d{1,3})(-?)$/.exec(words.get("e") ?? "");
  if (e) [studio.number, studio.sign] = [Number(e[1]), e[2] || "+"];
  const tab = words.get("t") ?? "skills";
  return Object.hasOwn(VIEWS, tab) && !$(`tab-${tab}`).hidden ? tab : "skills";
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
  $("settings").hidden = ["sample", "atari"].includes(tab);
  $("chance").parentElement.hidden = ["skills", "take"].includes(tab);
  for (const [name, view] of Object.entries(VIEWS)) view.shown?.(name === tab);
}

// Use the maze in a text; why it cannot be used, or nothing.
async function readText(text) {
  try {
    const found = await ask("maze", "api/maze", { map: text });
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
    button.textContent = "Press Ctrl+C";
    const range = document.createRange();
    const code = button.parentElement.querySelector("pre");
    if (code) {
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
  }
  setTimeout(() => button.replaceChildren(...before), 1500);
}

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").setAttribute("aria-label", theme === "dark" ? "Switch to light" : "Switch to dark");
  scaleBar($("reach-scale"), sequential);
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
      const found = await ask("maze", "api/random", { kind: $("kind").value, rows: Math.max(rows, 3), cols: Math.max(cols, 3), seed });
      if (!found) return;
      studio.replace(new Maze(found.map));
      const { rows: r, cols: c } = studio.maze;
      if (r !== rows || c !== cols) trouble = `${KINDS[$("kind").value] ?? $("kind").value}: ${r} × ${c} is the largest that fits into ${rows} × ${cols}.`;
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
      else if (button.dataset.download === "svg") download(`${name}.svg`, board.svg(), "image/svg+xml");
      else if (button.dataset.download === "gif") {
        const label = studio.option?.label.replace("−", "-") ?? "";
        board.film().then((film) => download(`${name}-${label}.gif`, film), (error) => studio.say(error.message));
      } else $("board").toBlob((blob) => download(`${name}.png`, blob));
    });
  }
  $("share").addEventListener("click", () => copy(location.href, $("share")));
  $("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    dress(next);
    try { localStorage.setItem("theme", next); } catch { /* private window: the choice is not kept */ }
    redraw();
  });
  $("settings").addEventListener("submit", (event) => event.preventDefault());
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
  // Tabs that are cut off fade out on that side.
  const fade = () => {
    tabs.classList.toggle("left", tabs.scrollLeft > 4);
    tabs.classList.toggle("right", tabs.scrollLeft + tabs.clientWidth < tabs.scrollWidth - 4);
  };
  tabs.addEventListener("scroll", fade);
  new ResizeObserver(fade).observe(tabs);
  tabs.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) { open(tab.getAttribute("aria-controls")); remember(); }
  });
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...tabs.children].filter((tab) => !tab.hidden);
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
  const zone = document.body;
  let depth = 0;
  const over = (on) => zone.classList.toggle("dropping", on);
  zone.addEventListener("dragenter", (event) => { event.preventDefault(); depth++; over(true); });
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("dragleave", () => { if (--depth <= 0) over(false); });
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    depth = 0;
    over(false);
    const dropped = event.dataTransfer.files[0];
    if (dropped?.size > 200_000) studio.say(`${dropped.name} is too large for a maze (${Math.round(dropped.size / 1000)} kB).`);
    else if (dropped) studio.say(await readText(await dropped.text()));
    else if (event.dataTransfer.getData("text")) studio.say(await readText(event.dataTransfer.getData("text")));
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
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* private window */ }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dress(chosen ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => { if (!chosen) { dress(dark.matches ? "dark" : "light"); redraw(); } });
  const hello = await greeting();
  studio.mazes = hello.mazes;
  Object.assign(studio, { limits: hello.limits, operators: hello.operators, methods: hello.methods });
  $("operator").replaceChildren(...hello.operators.map((name) => new Option(name)));
  $("kind").replaceChildren(...hello.kinds.map((name) => new Option(KINDS[name] ?? name, name)));
  $("builtin").replaceChildren(new Option("custom", ""), ...hello.mazes.map(({ name }) => new Option(name.replace("-", " "), name)));
  $("many").max = Math.min(64, studio.limits.options);
  $("tab-atari").hidden = !hello.atari;
  $("save").parentElement.hidden = serverless;
  $("where").textContent = serverless ? "Everything is computed in this page." : "Everything is computed on this machine.";
  $("waiting").remove();
  studio.maze = new Maze(hello.maze ?? hello.mazes.find(({ name }) => name === "four-rooms").map);
  for (const view of [board, ...Object.values(VIEWS)]) view.setup?.(studio);
  wire();
  const tab = recall();
  studio.tab = "";
  studio.edited();
  open(tab);
  remember();
}

start();
