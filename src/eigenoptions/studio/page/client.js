// Requests of the page to workers that compute in the browser (engine.js): one at a time per purpose; a newer request
// cancels the older one.

const startWorker = () => new Worker(new URL("engine.js", import.meta.url), { type: "module" });
const running = new Map();
let worker = null;
let queue = Promise.resolve();

export function cancel(purpose) {
  running.get(purpose)?.abort();
  running.delete(purpose);
}

function begin(purpose) {
  cancel(purpose);
  const control = new AbortController();
  running.set(purpose, control);
  return control.signal;
}

function send(target, path, body, onEvent) {
  return new Promise((done, fail) => {
    target.onmessage = ({ data }) => {
      if (data.event) onEvent(data.event);
      else if (data.error) fail(new Error(data.error));
      else done(true);
    };
    target.onerror = () => fail(new Error("This browser cannot run the computation: it needs module workers."));
    target.postMessage({ path, body });
  });
}

// The answer of the shared worker, with the milliseconds it took; null if a newer request was made.
export function ask(purpose, path, body) {
  const signal = begin(purpose);
  const job = queue.then(async () => {
    if (signal.aborted) return null;
    worker ??= startWorker();
    const began = performance.now();
    let answer = null;
    await send(worker, path, body, (event) => { answer = event; });
    return signal.aborted ? null : { ...answer, duration: performance.now() - began };
  });
  queue = job.catch(() => {});
  return job;
}

// Calls `onEvent` for each event of a worker of its own. True if they are complete, false if a newer request was made.
export async function stream(purpose, path, body, onEvent) {
  const signal = begin(purpose);
  const own = startWorker();
  const cancelled = new Promise((done) => { signal.addEventListener("abort", () => done(false)); });
  const complete = send(own, path, body, (event) => { if (!signal.aborted) onEvent(event); });
  return Promise.race([complete, cancelled]).finally(() => own.terminate());
}
