// Colours and canvases. The scales are safe for colour-blind eyes: blue to orange, and one hue from light to dark.

const THEMES = {
  light: {
    wall: "#4a4d54", free: "#fbfaf7", line: "rgba(34,37,42,.09)", ink: "#22252a", paper: "#ffffff", stop: "#c8102e",
    mark: "#22252a", path: "#22252a",
    cold: [27, 95, 165], middle: [250, 248, 244], warm: [230, 97, 1],
    ramp: [[247, 244, 236], [158, 211, 196], [55, 139, 155], [17, 70, 102], [8, 32, 58]],
    series: ["#c45500", "#1b5fa5", "#5b6470", "#0a7f64", "#8a4fa8", "#a07600"],
  },
  dark: {
    wall: "#0b0c0f", free: "#2a2e35", line: "rgba(255,255,255,.06)", ink: "#e8e6e1", paper: "#1c1f24", stop: "#e8304f",
    mark: "#f4f2ed", path: "#f4f2ed",
    cold: [74, 157, 240], middle: [38, 41, 48], warm: [255, 146, 56],
    ramp: [[30, 36, 44], [22, 76, 98], [36, 133, 140], [120, 201, 178], [236, 248, 226]],
    series: ["#ff9a47", "#6db2ff", "#aab2bd", "#4fd1a9", "#c795e6", "#e2bd4f"],
  },
};

export const theme = () => THEMES[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];

const blend = (a, b, w) => [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * w));

// -1 blue, 0 paper, 1 orange.
export function diverging(x) {
  const t = theme();
  return x < 0 ? blend(t.middle, t.cold, Math.min(-x, 1)) : blend(t.middle, t.warm, Math.min(x, 1));
}

// 0 paper, 1 darkest (brightest in the dark).
export function sequential(x) {
  const { ramp } = theme();
  const at = Math.min(Math.max(x, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  return blend(ramp[i], ramp[i + 1], at - i);
}

const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const isDark = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b < 128;

// A canvas of this width in CSS pixels, sharp on any screen; gives its context, in device pixels.
function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  return canvas.getContext("2d");
}

// One pixel a cell, to be stretched: a small heat map. `color` gets a state.
export function thumb(canvas, maze, numbers, color) {
  canvas.width = maze.cols;
  canvas.height = maze.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(maze.cols, maze.rows);
  const wall = theme().wall.match(/\w\w/g).map((x) => parseInt(x, 16));
  for (let i = 0; i < numbers.length; i++) {
    image.data.set(numbers[i] < 0 ? wall : color(numbers[i]), 4 * i);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// The whole maze: walls, coloured cells, arrows and stops, marks, path, walker and cursor.
// scene: {color(cell) -> rgb or null, action(cell) -> 0..3 (up, right, down, left), -1 (stops) or undefined, path, walker, cursor}
export function scene(canvas, maze, width, { color, action, path, walker, cursor, room = Infinity } = {}) {
  const t = theme();
  const size = Math.min(width / maze.cols, room / maze.rows);
  canvas.style.width = `${size * maze.cols}px`;
  canvas.style.height = `${size * maze.rows}px`;
  const context = fit(canvas, size * maze.cols, size * maze.rows);
  const [cw, ch] = [canvas.width / maze.cols, canvas.height / maze.rows];
  const gap = cw > 9 ? Math.max(1, Math.round(cw / 36)) : 0;
  const middle = (cell) => [((cell % maze.cols) + 0.5) * cw, (Math.floor(cell / maze.cols) + 0.5) * ch];
  context.fillStyle = t.wall;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (let cell = 0; cell < maze.cells.length; cell++) {
    if (!maze.free(cell)) continue;
    const [x, y] = [cell % maze.cols, Math.floor(cell / maze.cols)];
    const [x0, y0] = [Math.round(x * cw), Math.round(y * ch)];
    const [w, h] = [Math.round((x + 1) * cw) - x0 - gap, Math.round((y + 1) * ch) - y0 - gap];
    const rgb = color?.(cell);
    const act = action?.(cell);
    context.fillStyle = act === -1 ? t.stop : rgb ? css(rgb) : t.free;
    context.fillRect(x0, y0, w, h);
    if (act === undefined || cw < 5) continue;
    const [mx, my] = middle(cell);
    if (act === -1) {
      context.fillStyle = "#fff";
      context.beginPath();
      context.arc(mx - gap / 2, my - gap / 2, cw * 0.17, 0, 7);
      context.fill();
    } else {
      context.strokeStyle = context.fillStyle = rgb && isDark(rgb) ? "rgba(255,255,255,.92)" : "rgba(24,26,30,.8)";
      drawArrow(context, mx - gap / 2, my - gap / 2, cw, act);
    }
  }
  if (path?.length > 1) {
    context.lineJoin = context.lineCap = "round";
    context.beginPath();
    path.forEach((cell, i) => (i ? context.lineTo(...middle(cell)) : context.moveTo(...middle(cell))));
    if (Array.isArray(walker)) context.lineTo((walker[0] + 0.5) * cw, (walker[1] + 0.5) * ch);
    for (const [color, width] of [[t.paper, 0.24], [t.path, 0.12]]) {
      context.strokeStyle = color;
      context.lineWidth = Math.max(width * 20, cw * width);
      context.stroke();
    }
  }
  for (const letter of "SG") {
    const cell = maze.cells.indexOf(letter);
    if (cell >= 0) badge(context, ...middle(cell), cw, letter, t, action?.(cell) !== undefined);
  }
  if (walker !== undefined && walker !== null) {
    const [x, y] = Array.isArray(walker) ? [(walker[0] + 0.5) * cw, (walker[1] + 0.5) * ch] : middle(walker);
    context.fillStyle = t.mark;
    context.strokeStyle = t.paper;
    context.lineWidth = Math.max(1.5, cw * 0.08);
    context.beginPath();
    context.arc(x, y, Math.max(3, cw * 0.28), 0, 7);
    context.fill();
    context.stroke();
  }
  if (cursor !== undefined && cursor !== null) {
    const [x, y] = middle(cursor);
    context.strokeStyle = t.ink;
    context.lineWidth = Math.max(2, cw * 0.07);
    context.strokeRect(x - cw / 2 + 1, y - ch / 2 + 1, cw - 2, ch - 2);
    context.strokeStyle = t.paper;
    context.lineWidth = 1;
    context.strokeRect(x - cw / 2 + 3, y - ch / 2 + 3, cw - 6, ch - 6);
  }
}

function drawArrow(context, x, y, size, direction) {
  const r = size * 0.26;
  const [dy, dx] = [[-1, 0], [0, 1], [1, 0], [0, -1]][direction];
  context.lineWidth = Math.max(1, size * 0.055);
  context.lineCap = "round";
  if (size > 18) {
    context.beginPath();
    context.moveTo(x - dx * r, y - dy * r);
    context.lineTo(x + dx * r * 0.5, y + dy * r * 0.5);
    context.stroke();
  }
  const s = size > 18 ? 0.62 : 1.1;
  context.beginPath();
  context.moveTo(x + dx * r * 1.15, y + dy * r * 1.15);
  context.lineTo(x + dx * r * 0.2 - dy * r * s, y + dy * r * 0.2 + dx * r * s);
  context.lineTo(x + dx * r * 0.2 + dy * r * s, y + dy * r * 0.2 - dx * r * s);
  context.fill();
}

// Start and goal: a letter on a disc, in the corner of the cell when an arrow has the middle.
function badge(context, x, y, size, letter, t, aside) {
  const r = aside && size > 18 ? size * 0.21 : size * 0.36;
  const [cx, cy] = aside && size > 18 ? [x - size * 0.27, y - size * 0.27] : [x, y];
  context.fillStyle = letter === "G" ? "#0a7f64" : t.ink;
  context.beginPath();
  context.arc(cx, cy, r, 0, 7);
  context.fill();
  if (size < 8) return;
  context.fillStyle = letter === "G" ? "#fff" : t.paper;
  context.font = `700 ${r * 1.35}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(letter, cx, cy + r * 0.08);
}

export function scaleBar(canvas, color) {
  canvas.width = 64;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(64, 1);
  for (let i = 0; i < 64; i++) {
    image.data.set(color(i / 63), 4 * i);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}
