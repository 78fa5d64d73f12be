// Export: the lines of Python, the command, and the options file.

import { ask } from "./client.js";
import { copy, download } from "./main.js";

const $ = (id) => document.getElementById(id);
let studio;

export function setup(given) {
  studio = given;
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy($(button.dataset.copy).textContent, button));
  }
  $("save").addEventListener("click", async () => {
    try {
      const { file } = await ask("options", "options", studio.skills);
      download("options.safetensors", file, "application/octet-stream");
    } catch (error) { studio.say(error.message); }
  });
}

export function changed() {
  const { name, maze, operator, gamma, many, chance } = studio;
  const source = name ? `"${name}"` : `"""\n${maze.text}\n"""`;
  const how = operator === "normalized" ? "" : `, operator="${operator}"`;
  $("python").textContent = [
    "import eigenoptions as eo", "",
    `mdp = eo.maze(${source})`,
    `options = eo.discover(mdp, n_options=${many}, gamma=${gamma}${how})`,
    "print(options[:2])",
    ...(chance === null ? [] : [`print(eo.diffusion_time(mdp, options, option_chance=${chance}))`]),
    'options.save("options.safetensors")',
  ].join("\n");
  $("command-note").textContent = name ? "" : "First download the maze as text (button below the maze); the file is named maze.txt.";
  $("command").textContent = `eigenoptions discover ${name ?? "maze.txt"} -n ${many} --gamma ${gamma}${operator === "normalized" ? "" : ` --operator ${operator}`} --out out/`;
}
