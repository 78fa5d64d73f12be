// A small line chart as SVG: axes, lines with direct labels, bands, and horizontal rules.

const NS = "http://www.w3.org/2000/svg";

function node(parent, tag, attributes, text) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

export function human(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "∞";
  if (x >= 1e6) return `${(x / 10 ** Math.floor(Math.log10(x))).toFixed(1)}·10${[...String(Math.floor(Math.log10(x)))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("")}`;
  if (x >= 100) return Math.round(x).toLocaleString("en");
  return x >= 10 ? x.toFixed(1) : String(Number(x.toPrecision(3)));
}

function ticks(low, high, log) {
  if (log) {
    const out = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      for (const m of high / low > 200 ? [1] : high / low > 20 ? [1, 3] : [1, 2, 5]) {
        const v = Number((m * 10 ** p).toPrecision(1));
        if (v >= low * 0.999 && v <= high * 1.001) out.push(v);
      }
    }
    return out;
  }
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) out.push(Number(v.toPrecision(12)));
  return out;
}

// series: [{name, color, dash, faint, points: [[x, y]], band: [[x, low, high]]}]; rules: [{y, name}];
// x, y: {low, high, log, label, format}. Points above y.high sit on the upper edge as open triangles.
export function chart(svg, { series, rules = [], x, y }) {
  const [w, h] = [svg.clientWidth || 600, svg.clientHeight || 300];
  const narrow = w < 480;
  const named = series.filter(({ points }) => points.length);
  const [left, right, bottom] = [56, narrow ? 14 : 118, 42];
  const top = narrow ? 12 + 18 * Math.ceil(named.length / 3) : 14;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  const along = ({ low, high, log }, v) => (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  const px = (v) => left + along(x, v) * (w - left - right);
  const py = (v) => h - bottom - Math.min(Math.max(along(y, v), 0), 1) * (h - top - bottom);
  for (const v of ticks(y.low, y.high, y.log)) {
    node(svg, "line", { class: "grid", x1: left, x2: w - right, y1: py(v), y2: py(v) });
    node(svg, "text", { x: left - 8, y: py(v) + 4, "text-anchor": "end" }, (y.format ?? human)(v));
  }
  for (const v of ticks(x.low, x.high, x.log)) {
    node(svg, "text", { x: px(v), y: h - bottom + 18, "text-anchor": "middle" }, (x.format ?? human)(v));
  }
  node(svg, "text", { x: left + (w - left - right) / 2, y: h - 4, "text-anchor": "middle" }, x.label);
  for (const { y: v, name } of rules) {
    node(svg, "line", { class: "rule", x1: left, x2: w - right, y1: py(v), y2: py(v) });
    if (narrow) node(svg, "text", { class: "name", x: w - right - 4, y: py(v) - 6, "text-anchor": "end" }, name);
  }
  const labels = narrow ? [] : rules.map(({ y: v, name }) => ({ name, color: "", x: w - right, y: py(v) }));
  for (const { name, color, dash, points, band, dots, faint } of named) {
    if (band?.length) {
      const edge = [...band.map(([a, , c]) => [a, c]), ...band.map(([a, b]) => [a, b]).reverse()];
      const area = node(svg, "path", { d: `M${edge.map(([a, b]) => `${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("L")}Z`, fill: color });
      area.style.opacity = 0.16;
    }
    const d = points.map(([a, b]) => `${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("L");
    node(svg, "path", { d: `M${d}`, fill: "none", stroke: color, "stroke-width": faint ? 1.25 : 2.5, opacity: faint ? 0.6 : 1, "stroke-linejoin": "round", ...(dash ? { "stroke-dasharray": dash } : {}) });
    for (const [a, b] of dots === false || faint ? [] : points) {
      if (b > y.high) node(svg, "path", { d: `M${px(a) - 4} ${top + 4}l4-8l4 8z`, fill: "none", stroke: color, "stroke-width": 1.5 });
      else if (points.length < 90) node(svg, "circle", { cx: px(a), cy: py(b), r: 3, fill: color });
    }
    const [lastX, lastY] = points.at(-1);
    if (!narrow) labels.push({ name, color, x: Math.min(px(lastX), w - right), y: py(lastY) });
  }
  named.forEach(({ name, color }, i) => {
    if (!narrow) return;
    const label = node(svg, "text", { class: "name", x: 8 + (i % 3) * ((w - 16) / 3), y: 12 + Math.floor(i / 3) * 18 }, name);
    label.style.fill = color;
  });
  // From the top down, no label closer than a line to the one above; then the whole stack up, if it left the chart.
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => { if (i) label.y = Math.max(label.y, labels[i - 1].y + 15); });
  for (let i = labels.length - 1, limit = h - bottom + 6; i >= 0; i--, limit -= 15) labels[i].y = Math.min(labels[i].y, limit);
  for (const { name, color, x: at, y: height } of labels) {
    const label = node(svg, "text", { class: "name", x: at + 8, y: height + 4 }, name);
    if (color) label.style.fill = color;
  }
}
