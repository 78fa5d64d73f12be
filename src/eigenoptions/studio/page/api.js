// Requests to the server, or to workers in the browser where there is none (local.js): one at a time per purpose; a
// newer one cancels the older.

const local = document.documentElement.dataset.engine === "browser" ? await import("./local.js") : null;
export const serverless = Boolean(local);

const running = new Map();

function begin(purpose) {
  running.get(purpose)?.abort();
  const control = new AbortController();
  running.set(purpose, control);
  return control;
}

export function cancel(purpose) {
  running.get(purpose)?.abort();
  running.delete(purpose);
}

async function post(path, body, signal) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST", body: JSON.stringify(body), signal, headers: { "content-type": "application/json" },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio's server does not answer. Is it still running in the terminal?");
  }
  if (!response.ok) {
    let reason = `the server answered ${response.status}`;
    try { reason = (await response.json()).error ?? reason; } catch { /* not JSON: show the status */ }
    throw new Error(reason);
  }
  return response;
}

// The answer, or null if a newer request was sent.
export async function ask(purpose, path, body) {
  const control = begin(purpose);
  try {
    if (local) {
      const began = performance.now();
      const found = await local.answer(path.replace("api/", ""), body, control.signal);
      return control.signal.aborted ? null : { ...found, serverTime: performance.now() - began };
    }
    const response = await post(path, body, control.signal);
    const answer = await response.json();
    const total = /total;dur=([\d.]+)/.exec(response.headers.get("server-timing") ?? "");
    answer.serverTime = total ? Number(total[1]) : null;
    return control.signal.aborted ? null : answer;
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw error;
  }
}

export const hello = async () => (local ? local.hello() : (await fetch("api/hello")).json());

export async function file(path, body) {
  return (await post(path, body)).blob();
}

// Calls `event` for each line of the answer. True if it is complete, false if a newer request was sent.
export async function stream(purpose, path, body, event) {
  const control = begin(purpose);
  try {
    if (local) return await local.events(path.replace("api/", ""), body, control.signal, event);
    const response = await post(path, body, control.signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (control.signal.aborted) return false;
      if (done) return true;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const found = JSON.parse(line);
        if (found.error && !found.method) throw new Error(found.error);
        event(found);
      }
    }
  } catch (error) {
    if (error.name === "AbortError" || control.signal.aborted) return false;
    throw error;
  }
}

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

// Arrays of the server are text; those of a worker are arrays.
const reader = (Kind) => (given) => (typeof given === "string" ? new Kind(bytes(given)) : given);
export const floats = reader(Float32Array);
export const actions = reader(Int8Array);
export const shorts = reader(Int16Array);
