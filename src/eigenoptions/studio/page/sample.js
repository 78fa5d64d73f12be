// The sampled view: rows of the incidence matrix, the Gram matrix, and its eigenvectors beside the exact ones.

import { stream, cancel, floats, shorts } from "./api.js";
import { chart, human } from "./chart.js";
import { fit, thumb, diverging, theme } from "./paint.js";

const $ = (id) => document.getElementById(id);
const ROWS = 60;
let studio;
let found = null;
let timer = null;

export function setup(given) {
  studio = given;
  $("sample-go").addEventListener("click", () => (found?.running ? halt("stopped") : work()));
}

export function changed(visible) {
  halt("");
  found = null;
  clearTimeout(timer);
  if (visible) timer = setTimeout(work, 400);
}

export function shown(visible) {
  if (!visible) halt("");
  else if (!found) work();
  else draw();
}

export function redraw(visible) { if (visible && found?.head) draw(); }

function halt(note) {
  cancel("sample");
  if (found) found.running = false;
  $("sample-go").textContent = "Walk";
  if (note) $("sample-note").textContent = note;
}

async function work() {
  const maze = studio.maze.copy();
  found = { maze, numbers: maze.numbers(), running: true, pairs: [], history: [], head: null, look: null };
  $("sample-go").textContent = "Stop";
  $("sample-note").textContent = "";
  $("sample").dataset.state = "running";
  const mine = found;
  try {
    const whole = await stream("sample", "api/sample", { ...studio.map, seed: studio.seed }, (event) => {
      if (found !== mine) return;
      if (event.exact) found.head = { ...event, exact: floats(event.exact) };
      else if (event.steps) {
        found.look = { ...event, gram: shorts(event.gram), vectors: event.vectors ? floats(event.vectors) : null };
        for (let i = 0; i < event.new.length; i += 2) found.pairs.push([event.new[i], event.new[i + 1]]);
        found.history.push([event.steps, event.agreement]);
      } else found.complete = event.done;
      requestAnimationFrame(draw);
    });
    if (!whole || found !== mine) return;
    found.running = false;
    $("sample-go").textContent = "Walk again";
    $("sample").dataset.state = "done";
    studio.seed = (studio.seed + 1) % 2 ** 32;
  } catch (error) {
    halt(error.message);
    $("sample").dataset.state = "failed";
    found = null;
  }
}

function draw() {
  const { head, look, maze, numbers, pairs, history, complete } = found ?? {};
  if (!head || !look) return;
  const t = theme();
  const n = head.states;
  const blue = `rgb(${t.cold})`;
  const orange = `rgb(${t.warm})`;
  const square = (id) => {
    const canvas = $(id);
    const width = canvas.parentElement.clientWidth;
    canvas.style.height = `${width}px`;
    const context = fit(canvas, width, width);
    context.fillStyle = t.free;
    context.fillRect(0, 0, canvas.width, canvas.height);
    return [context, canvas.width];
  };
  const [T, tw] = square("incidence");
  const [cw, ch] = [tw / n, tw / ROWS];
  pairs.slice(-ROWS).forEach(([s, to], i) => {
    for (const [column, color] of [[s, blue], [to, orange]]) {
      T.fillStyle = color;
      T.fillRect(column * cw, i * ch + 1, Math.max(cw, 3), ch - 1);
    }
  });
  const [G, gw] = square("gram");
  const entries = look.gram.length / 3;
  const size = gw / n;
  for (let i = 0; i < entries; i++) {
    const v = look.gram[2 * entries + i];
    const [r, g, b] = diverging(v > 0 ? v / 8 : v / 2);
    G.fillStyle = `rgb(${r},${g},${b})`;
    G.fillRect(Math.floor(look.gram[entries + i] * size), Math.floor(look.gram[i] * size), Math.max(Math.ceil(size), 2), Math.max(Math.ceil(size), 2));
  }
  $("sample-rows").textContent = human(look.rows);
  $("sample-share").textContent = `${Math.floor((100 * look.rows) / head.transitions)} %`;
  $("sample-note").textContent = complete
    ? `All transitions seen after ${human(look.steps)} steps: TᵀT = 2L.`
    : `${human(look.steps)} steps, ${human(look.rows)} of ${human(head.transitions)} transitions`;
  const shown = head.eigenvalues.length;
  const list = $("sampled");
  while (list.children.length > shown) list.lastChild.remove();
  while (list.children.length < shown) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.append(document.createElement("span"), document.createElement("b"));
    figure.append(document.createElement("canvas"), document.createElement("canvas"), caption);
    list.append(figure);
  }
  for (let j = 0; j < shown; j++) {
    const figure = list.children[j];
    const [above, below] = figure.querySelectorAll("canvas");
    for (const [canvas, vectors] of [[above, look.vectors], [below, head.exact]]) {
      const vector = vectors?.subarray(j * n, (j + 1) * n);
      const peak = vector?.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
      thumb(canvas, maze, numbers, (s) => diverging(vector ? vector[s] / peak : 0));
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${canvas === above ? "sampled" : "exact"} eigenvector ${j + 2}`);
    }
    figure.querySelector("span").textContent = `e${j + 2}`;
    figure.querySelector("b").textContent = `${Math.floor(100 * look.agreement[j] + 1e-6)} %`;
  }
  const first = history[0][0];
  chart($("sample-chart"), {
    x: { low: first, high: Math.max(history.at(-1)[0], first * 10), log: true, label: "steps of the walk" },
    y: { low: 0, high: 1, format: (v) => `${Math.round(100 * v)} %` },
    series: head.eigenvalues.map((_, j) => ({
      name: `e${j + 2}`, color: t.series[j % 6], dots: false, dash: ["", "7 4", "2 4", "", "7 4", "2 4"][j], points: history.map(([steps, agreement]) => [steps, agreement[j]]),
    })),
  });
  $("sample-chart").setAttribute("aria-label", `Share of each sampled eigenvector that lies in the exact eigenspace, after ${look.steps} steps: ${look.agreement.map((a, j) => `e${j + 2} ${Math.round(100 * a)} percent`).join(", ")}`);
}
