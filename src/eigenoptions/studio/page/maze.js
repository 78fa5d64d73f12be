// A maze as a rectangle of characters, its code in the address, and its history.

export const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]]; // up, right, down, left

export class Maze {
  constructor(lines) {
    this.rows = lines.length;
    this.cols = lines[0].length;
    this.cells = lines.join("").split("");
  }

  lines() {
    return Array.from({ length: this.rows }, (_, y) => this.cells.slice(y * this.cols, (y + 1) * this.cols).join(""));
  }

  get text() {
    return this.lines().join("\n");
  }

  free(cell) {
    return this.cells[cell] !== "#";
  }

  // Numbers of the states, cell by cell: the free cells, row by row; -1 for walls.
  numbers() {
    let n = 0;
    return this.cells.map((c) => (c === "#" ? -1 : n++));
  }

  // The cell an action leads to; moving into a wall or off the map changes nothing.
  next(cell, action) {
    const [dy, dx] = MOVES[action];
    const y = Math.floor(cell / this.cols) + dy;
    const x = (cell % this.cols) + dx;
    if (y < 0 || x < 0 || y >= this.rows || x >= this.cols) return cell;
    return this.free(y * this.cols + x) ? y * this.cols + x : cell;
  }

  set(cell, letter) {
    if (letter === "S" || letter === "G") {
      const old = this.cells.indexOf(letter);
      if (old >= 0) this.cells[old] = ".";
    }
    this.cells[cell] = letter;
  }

  // New cells are free; cells that do not fit are dropped.
  resized(rows, cols) {
    const lines = this.lines();
    const row = (y) => (lines[y] ?? "").slice(0, cols).padEnd(cols, ".");
    return new Maze(Array.from({ length: rows }, (_, y) => row(y)));
  }

  // 13x13.<free cells as bits, base64url>.<start>.<goal>
  get code() {
    const bytes = new Uint8Array(Math.ceil(this.cells.length / 8));
    this.cells.forEach((c, i) => { if (c !== "#") bytes[i >> 3] |= 1 << (i & 7); });
    const bits = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    const place = (letter) => { const i = this.cells.indexOf(letter); return i < 0 ? "" : i; };
    return `${this.rows}x${this.cols}.${bits}.${place("S")}.${place("G")}`;
  }

  static decode(code, most) {
    const found = /^(\d{1,3})x(\d{1,3})\.([\w-]*)\.(\d*)\.(\d*)$/.exec(code);
    if (!found) throw new Error("the link contains no maze");
    const [rows, cols] = [Number(found[1]), Number(found[2])];
    if (rows < 1 || cols < 1 || rows > most || cols > most) throw new Error(`the maze in the link is ${rows} × ${cols}: at most ${most} × ${most} can be drawn`);
    const bytes = atob(found[3].replaceAll("-", "+").replaceAll("_", "/"));
    if (bytes.length !== Math.ceil((rows * cols) / 8)) throw new Error("the link is incomplete");
    const maze = new Maze(Array(rows).fill(".".repeat(cols)));
    maze.cells = maze.cells.map((_, i) => ((bytes.charCodeAt(i >> 3) >> (i & 7)) & 1 ? "." : "#"));
    for (const [letter, place] of [["S", found[4]], ["G", found[5]]]) {
      if (place !== "" && Number(place) < rows * cols) maze.set(Number(place), letter);
    }
    return maze;
  }
}

// Undo and redo over whole mazes: they are small.
export class History {
  constructor() {
    this.past = [];
    this.future = [];
  }

  keep(maze) {
    const lines = maze.lines();
    if (this.past.length && this.past.at(-1).join() === lines.join()) return;
    this.past.push(lines);
    this.future = [];
  }

  undo(maze) {
    return this.#move(this.past, this.future, maze);
  }

  redo(maze) {
    return this.#move(this.future, this.past, maze);
  }

  #move(from, to, maze) {
    if (!from.length) return null;
    to.push(maze.lines());
    return new Maze(from.pop());
  }
}
