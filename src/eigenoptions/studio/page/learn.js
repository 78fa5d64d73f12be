// Learning curves of the drawn task, averaged over a growing number of runs.

import { stream, cancel } from "./client.js";
import { chart } from "./chart.js";
import { theme } from "./paint.js";

const $ = (id) => document.getElementById(id);
let studio;
let found = null;
let timer = null;

export function setup(given) {
  studio = given;
  $("learn-go").addEventListener("click", work);
}

export function changed(visible) {
  cancel("learn");
  clearTimeout(timer);
  if (visible) timer = setTimeout(work, 400);
  found = null;
  $("learn-chart").replaceChildren();
  $("learn-note").textContent = "";
  delete $("learn").dataset.state;
}

export function shown(visible) { if (visible) { if (found) draw(); else work(); } }

export function redraw(visible) { if (visible && found?.head) draw(); }

async function work() {
  $("learn-go").disabled = Boolean(studio.untasked);
  if (studio.untasked) {
    $("learn-note").textContent = studio.untasked;
    $("learn").dataset.state = "failed";
    return;
  }
  found = { curves: {} };
  $("learn-note").textContent = "learning…";
  $("learn").dataset.state = "running";
  try {
    const whole = await stream("learn", "learn", studio.skills, (event) => {
      if (event.episodes) found.head = event;
      else found.curves[event.method] = event;
      requestAnimationFrame(draw);
    });
    if (whole) $("learn").dataset.state = "done";
  } catch (error) {
    $("learn-note").textContent = error.message;
    $("learn").dataset.state = "failed";
    found = null;
  }
}

function draw() {
  if (!found?.head) return;
  const { head, curves } = found;
  const colors = theme().series;
  const looks = { options: ["with options", colors[0], ""], primitive: ["moves only", colors[2], "7 4"] };
  chart($("learn-chart"), {
    x: { low: 0, high: head.episodes, label: "episodes", format: String },
    y: { low: 0, high: 1, format: (v) => `${Math.round(100 * v)} %` },
    series: Object.entries(looks).filter(([key]) => curves[key]).map(([key, [name, color, dash]]) => ({
      name, color, dash, dots: false, points: curves[key].mean.map((y, i) => [i + 1, y]),
      band: curves[key].low.map((low, i) => [i + 1, low, curves[key].high[i]]),
    })),
  });
  const runs = Math.min(...Object.values(curves).map((c) => c.runs));
  const mean = (key) => curves[key] && Math.round((100 * curves[key].mean.reduce((a, b) => a + b, 0)) / head.episodes);
  const text = `${Number.isFinite(runs) ? runs : 0} runs, at most ${head.max_steps} steps per episode; the shortest path has ${head.shortest}. The curves show the share of evaluation episodes that reach the goal.`;
  $("learn-note").textContent = text;
  if (curves.primitive && curves.options) $("learn-chart").setAttribute("aria-label", `Learning curves: the goal is reached in ${mean("primitive")} percent of evaluation episodes with moves only, ${mean("options")} percent with ${head.n} options.`);
}
