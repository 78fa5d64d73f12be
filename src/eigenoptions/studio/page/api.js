// Requests to the server: one at a time per purpose; a newer one cancels the older.

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

export async function file(path, body) {
  return (await post(path, body)).blob();
}

// Calls `event` for each line of the answer. True if it is complete, false if a newer request was sent.
export async function stream(purpose, path, body, event) {
  const control = begin(purpose);
  try {
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

export const floats = (text) => new Float32Array(bytes(text));
export const actions = (text) => new Int8Array(bytes(text));
export const shorts = (text) => new Int16Array(bytes(text));
