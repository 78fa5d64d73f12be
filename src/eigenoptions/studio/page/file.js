// Options as a safetensors file that eigenoptions.load_options reads: 8 bytes with the length of a JSON header, the header,
// and the arrays one after the other. The MDP is stored whole, as a csr table of the moves.

// Names of the types in safetensors and in NumPy.
const TYPES = { Float64Array: ["F64", "<f8"], Int32Array: ["I32", "<i4"], Int8Array: ["I8", "|i1"] };
const toBytes = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

export async function writeOptions({ n, next, start, goal, cells }, { labels, policies, values, eigenvalues }, provenance) {
  const many = labels.length;
  // Large types first, so that every array is aligned.
  const arrays = {
    value: [values, [many, n]],
    "transition.data": [new Float64Array(4 * n).fill(1), [4 * n]],
    "transition.indices": [next, [4 * n]],
    "transition.indptr": [Int32Array.from({ length: 4 * n + 1 }, (_, row) => row), [4 * n + 1]],
    "mdp.coords": [Int32Array.from(cells.flat()), [n, 2]],
    policy: [policies, [many, n]],
  };
  const purposes = labels.map((label, i) => ({
    label, index: Number(/\d+/.exec(label)), sign: label.endsWith("-") ? -1 : 1, goal: null, eigenvalue: eigenvalues[i],
  }));
  const about = JSON.stringify({ kind: "options", format: 1, purposes, provenance, mdp: { start, goal, name: "", legend: "" } });
  const header = { __metadata__: { eigenoptions: `${await computeDigest(about, arrays)} ${about}` } };
  let offset = 0;
  for (const [name, [array, shape]] of Object.entries(arrays)) {
    header[name] = { dtype: TYPES[array.constructor.name][0], shape, data_offsets: [offset, offset + array.byteLength] };
    offset += array.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = 8 * Math.ceil(text.length / 8);
  const bytes = new Uint8Array(8 + length + offset).fill(32, 8, 8 + length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text, 8);
  for (const [name, [array]] of Object.entries(arrays)) bytes.set(toBytes(array), 8 + length + header[name].data_offsets[0]);
  return bytes;
}

// SHA-256 of the text, and of the name, type, shape and content of each array, as in options/storage.py.
async function computeDigest(text, arrays) {
  if (!crypto.subtle) throw new Error("Files are saved only by pages of https or of this machine: use the lines of Python.");
  const parts = [text];
  for (const name of Object.keys(arrays).sort()) {
    const [array, shape] = arrays[name];
    parts.push(`${name} ${TYPES[array.constructor.name][1]} (${shape.join(", ")}${shape.length === 1 ? "," : ""})`, toBytes(array));
  }
  const digest = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
