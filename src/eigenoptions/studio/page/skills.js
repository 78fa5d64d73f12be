// The eigenvectors, smallest eigenvalue first, and a description of the chosen option.

import { thumb, diverging } from "./paint.js";

const $ = (id) => document.getElementById(id);
const ARROWS = "↑→↓←";
let studio;

export function setup(given) {
  studio = given;
  const list = $("gallery");
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) pick(Number(button.dataset.index));
  });
  list.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
    list.querySelector("[aria-pressed=true]")?.focus();
  });
  $("more").lastElementChild.addEventListener("click", more);
}

export function step(by) {
  const { option, picture } = studio;
  if (!option) return;
  const next = option.index + by;
  if (next >= picture.eigenvalues.length) more();
  else if (next >= 0) pick(next);
}

function pick(index) {
  studio.choose({ number: index + 1 + studio.picture.pieces });
}

function more() {
  const { picture, limits } = studio;
  if (!picture?.more || picture.eigenvalues.length >= limits.shown || studio.shown > picture.eigenvalues.length) return;
  studio.shown = Math.min(picture.eigenvalues.length + 16, limits.shown);
  studio.refresh();
}

export function arrived() {
  const { picture: p } = studio;
  const list = $("gallery");
  if (!p) {
    list.replaceChildren();
    $("caption").textContent = $("astext").textContent = "";
    $("more").hidden = true;
    return;
  }
  while (list.children.length > p.eigenvalues.length) list.lastChild.remove();
  p.eigenvalues.forEach((value, i) => {
    const item = list.children[i] ?? list.appendChild(blank(i));
    const vector = p.vectors.subarray(i * p.states, (i + 1) * p.states);
    const peak = vector.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
    thumb(item.querySelector("canvas"), { rows: p.rows, cols: p.cols }, p.numbers, (s) => diverging(vector[s] / peak));
    item.querySelector("b").textContent = `e${i + 1 + p.pieces}`;
    item.querySelector("span").textContent = value < 0.001 ? value.toExponential(1) : value.toPrecision(3);
    item.firstChild.setAttribute("aria-label", `Eigenvector ${i + 1 + p.pieces}, eigenvalue ${value.toPrecision(4)}`);
  });
  const most = p.eigenvalues.length >= studio.limits.shown;
  $("more").hidden = false;
  $("more").firstElementChild.textContent = p.more ? (most ? `The first ${p.eigenvalues.length} are shown; the library computes more.` : "") : "All eigenvectors are shown.";
  $("more").lastElementChild.hidden = !p.more || most;
  chosen();
}

function blank(i) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.index = i;
  button.append(document.createElement("canvas"), document.createElement("b"), document.createElement("span"));
  item.append(button);
  return item;
}

export function chosen() {
  const { option, picture: p } = studio;
  if (!option) return;
  [...$("gallery").children].forEach(({ firstChild: button }, i) => {
    button.setAttribute("aria-pressed", i === option.index);
    button.tabIndex = i === option.index ? 0 : -1;
  });
  $("which").textContent = option.label;
  const here = p.states - option.away;
  const stops = option.policy.reduce((n, a, s) => n + (a < 0 && !option.elsewhere(s)), 0);
  const where = { vector: "from blue to orange", value: "until nothing is left to gain: the colour is its value, the discounted rise ahead", start: "from any shaded cell" }[studio.layer];
  const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  $("caption").replaceChildren(
    strong(option.label), ` climbs ${where}. It may start in ${here - stops} of ${many(p.states, "cell")} and stops on `,
    strong(many(stops, "red cell"), "stop"), `, after ${option.length.toFixed(1)} steps on average. `,
    option.away ? `The other ${many(option.away, "cell")} belong to other components. ` : "",
    studio.tool === "run" ? "Click a cell to watch." : "",
  );
  const lines = [];
  for (let y = 0; y < p.rows; y++) {
    lines.push(p.numbers.slice(y * p.cols, (y + 1) * p.cols).map((s) => (s < 0 ? "█" : option.elsewhere(s) ? " " : option.policy[s] < 0 ? "●" : ARROWS[option.policy[s]])).join(""));
  }
  $("astext").textContent = lines.join("\n");
}

function strong(text, name = "") {
  const element = document.createElement("b");
  element.textContent = text;
  element.className = name;
  return element;
}
