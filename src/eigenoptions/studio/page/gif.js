// Animated GIFs of canvases: 256 colours for the whole film, and of each frame only the rectangle that changed.

const MAX_COLORS = 256;

// The most frequent colours of the frames, in steps of 8 per channel, and the colour of each pixel.
function palette(frames) {
  const count = new Map();
  const keys = frames.map(({ data }) => {
    const keyed = new Uint16Array(data.length / 4);
    for (let i = 0; i < keyed.length; i++) {
      keyed[i] = ((data[4 * i] >> 3) << 10) | ((data[4 * i + 1] >> 3) << 5) | (data[4 * i + 2] >> 3);
      const seen = count.get(keyed[i]);
      if (seen) seen.n++;
      else count.set(keyed[i], { n: 1, rgb: [data[4 * i], data[4 * i + 1], data[4 * i + 2]] });
    }
    return keyed;
  });
  const colors = [...count.values()].sort((a, b) => b.n - a.n).slice(0, MAX_COLORS).map(({ rgb }) => rgb);
  const nearest = new Map();
  for (const [key, { rgb }] of count) {
    let [best, least] = [0, Infinity];
    colors.forEach((other, i) => {
      const far = (rgb[0] - other[0]) ** 2 + (rgb[1] - other[1]) ** 2 + (rgb[2] - other[2]) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    nearest.set(key, best);
  }
  return { colors, pixels: keys.map((keyed) => Uint8Array.from(keyed, (key) => nearest.get(key))) };
}

// Rectangle [x0, y0, x1, y1) in which two frames differ; one pixel if they do not.
function changed(before, now, width, height) {
  if (!before) return [0, 0, width, height];
  let [x0, y0, x1, y1] = [width, height, 0, 0];
  for (let i = 0; i < now.length; i++) {
    if (before[i] === now[i]) continue;
    const [x, y] = [i % width, Math.floor(i / width)];
    [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x + 1), Math.max(y1, y + 1)];
  }
  return x1 ? [x0, y0, x1, y1] : [0, 0, 1, 1];
}

// Pixels by the LZW rule of the format, in blocks of at most 255 bytes.
function compressed(pixels) {
  const [clear, end] = [256, 257];
  const bytes = [];
  let [buffer, bits, size, next] = [0, 0, 9, 258];
  const emit = (code) => {
    buffer |= code << bits;
    bits += size;
    while (bits >= 8) { bytes.push(buffer & 255); buffer >>= 8; bits -= 8; }
  };
  let table = new Map();
  emit(clear);
  let prefix = pixels[0];
  for (let i = 1; i < pixels.length; i++) {
    const key = (prefix << 8) | pixels[i];
    const known = table.get(key);
    if (known !== undefined) { prefix = known; continue; }
    emit(prefix);
    if (next < 4096) {
      table.set(key, next++);
      if (next > 1 << size && size < 12) size++;
    } else {
      emit(clear);
      table = new Map();
      [size, next] = [9, 258];
    }
    prefix = pixels[i];
  }
  emit(prefix);
  if (next >= 1 << size && size < 12) size++;
  emit(end);
  if (bits) bytes.push(buffer & 255);
  const blocks = [8];
  for (let i = 0; i < bytes.length; i += 255) blocks.push(Math.min(255, bytes.length - i), ...bytes.slice(i, i + 255));
  return [...blocks, 0];
}

// Bytes of an endless film of frames (ImageData of one size), each shown for as many hundredths of a second.
export function gif(frames, delays) {
  const { width, height } = frames[0];
  const { colors, pixels } = palette(frames);
  const short = (n) => [n & 255, n >> 8];
  const parts = [
    [...new TextEncoder().encode("GIF89a"), ...short(width), ...short(height), 0xf7, 0, 0],
    Array.from({ length: MAX_COLORS }, (_, i) => colors[i] ?? [0, 0, 0]).flat(),
    [0x21, 0xff, 11, ...new TextEncoder().encode("NETSCAPE2.0"), 3, 1, 0, 0, 0],
  ];
  pixels.forEach((now, i) => {
    const [x0, y0, x1, y1] = changed(pixels[i - 1], now, width, height);
    const part = new Uint8Array((x1 - x0) * (y1 - y0));
    for (let y = y0; y < y1; y++) part.set(now.subarray(y * width + x0, y * width + x1), (y - y0) * (x1 - x0));
    parts.push([0x21, 0xf9, 4, 4, ...short(delays[i]), 0, 0], [0x2c, ...short(x0), ...short(y0), ...short(x1 - x0), ...short(y1 - y0), 0], compressed(part));
  });
  parts.push([0x3b]);
  return new Blob(parts.map((part) => Uint8Array.from(part)), { type: "image/gif" });
}
