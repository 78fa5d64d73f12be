// Requests of the page without a server: workers in the browser compute them.

const start = () => new Worker(new URL("engine.js", import.meta.url), { type: "module" });
let worker = null;
let queue = Promise.resolve();

function ask(own, path, body, event) {
  return new Promise((done, fail) => {
    own.onmessage = ({ data }) => {
      if (data.event) event(data.event);
      else if (data.error) fail(new Error(data.error));
      else done(true);
    };
    own.onerror = () => fail(new Error("the browser cannot run the computation: it needs module workers"));
    own.postMessage({ path, body });
  });
}

// One answer after the other, by one worker; a request that has been replaced meanwhile is not begun.
export function answer(path, body, signal) {
  const job = queue.then(async () => {
    if (signal.aborted) return null;
    worker ??= start();
    let found = null;
    await ask(worker, path, body, (event) => { found = event; });
    return found;
  });
  queue = job.catch(() => {});
  return job;
}

// Events of a worker of their own, which ends when the request is cancelled. True if they are complete.
export function events(path, body, signal, event) {
  const own = start();
  const cancelled = new Promise((done) => { signal.addEventListener("abort", () => done(false)); });
  return Promise.race([ask(own, path, body, (found) => { if (!signal.aborted) event(found); }), cancelled]).finally(() => own.terminate());
}

export async function hello() {
  const [stored, { METHODS }, { LIMITS }] = await Promise.all([fetch("hello.json").then((response) => response.json()), import("./methods.js"), import("./engine.js")]);
  return { ...stored, methods: Object.keys(METHODS), limits: LIMITS };
}
