// Results of the Atari part: heat maps of the player's positions, histograms, and clips.

const $ = (id) => document.getElementById(id);
const FIELDS = [["heatmap", "where the player spends its time"], ["histogram", "how often the player is at each height, against a random walk"], ["clip", "the option running"]];
let games = null;

export function setup() {
  $("game").addEventListener("change", options);
  $("game-option").addEventListener("change", draw);
}

export async function shown(visible) {
  if (!visible || games) return;
  const answer = await (await fetch("api/atari")).json();
  games = answer.games ?? [];
  $("game").replaceChildren(...games.map(({ name }, i) => new Option(name, i)));
  if (games.length) options();
  else $("game-view").textContent = answer.error ?? "No results yet.";
}

function options() {
  $("game-option").replaceChildren(...games[$("game").value].options.map(({ label }, i) => new Option(label, i)));
  draw();
}

function draw() {
  const option = games[$("game").value].options[$("game-option").value];
  const view = $("game-view");
  view.replaceChildren();
  if (!option) return;
  for (const [field, words] of FIELDS) {
    const name = option[field];
    if (!name) continue;
    const figure = document.createElement("figure");
    const film = /\.(mp4|webm)$/.test(name);
    const picture = document.createElement(film ? "video" : "img");
    if (film) Object.assign(picture, { controls: true, loop: true, muted: true });
    else picture.alt = `${option.label}: ${words}`;
    picture.src = `atari/${name.split("/").map(encodeURIComponent).join("/")}`;
    const caption = document.createElement("figcaption");
    caption.textContent = words;
    figure.append(picture, caption);
    view.append(figure);
  }
  if (option.note) {
    const note = document.createElement("p");
    note.textContent = option.note;
    view.append(note);
  }
}
