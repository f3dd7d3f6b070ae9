/** Requests to the worker, and the state that all views share. */
import { useEffect, useReducer } from './vendor/htm-preact.js';

/** How often the list is asked for; and while nobody looks at the tab. */
const SHOWN_MS = 2000;
const HIDDEN_MS = 30000;

/** An answer that says no, in the worker's words. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Everything that is known: `connectors` by name, `worker` and `mode` of api/worker, `problem` when the worker does not answer. */
export const store = { seq: 0, connectors: {}, worker: null, mode: 'full', problem: '', loaded: false, toasts: [] };

const listeners = new Set();

export function changed() {
  for (const listener of [...listeners]) listener();
}

/** Draws a component again whenever the state changes. */
export function useStore() {
  const [, redraw] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    listeners.add(redraw);
    return () => listeners.delete(redraw);
  }, []);
  return store;
}

/** Asks for something below /ui/ and returns its JSON; null when there is none. Throws Refused. */
export async function ask(path, { method = 'GET', body, headers = {} } = {}) {
  const sent = { ...headers, Accept: 'application/json' };
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  let answer;
  try {
    answer = await fetch(new URL(path, document.baseURI), {
      method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), cache: 'no-store',
    });
  } catch {
    throw new Refused(0, 'The worker does not answer.');
  }
  const text = await answer.text();
  let found = null;
  try {
    found = text ? JSON.parse(text) : null;
  } catch {
    found = { message: text };
  }
  if (!answer.ok && answer.status !== 304) {
    throw new Refused(answer.status, (found && found.message) || `HTTP ${answer.status}`);
  }
  return answer.status === 304 ? undefined : found;
}

/** Asks the REST API, whose root is one above the page. */
export const rest = (path, options) => ask(`../${path}`, options);

/** A connector's address in the REST API, or below api/. */
export const address = (name, rest_of = '') => `connectors/${encodeURIComponent(name)}${rest_of}`;

async function poll() {
  try {
    const headers = store.seq ? { 'If-None-Match': `"${store.seq}"` } : {};
    const found = await ask(`api/state${store.seq ? `?since=${store.seq}` : ''}`, { headers });
    if (found) {
      const kept = found.full ? {} : { ...store.connectors };
      for (const name of found.gone) delete kept[name];
      store.connectors = { ...kept, ...found.connectors };
      store.seq = found.seq;
    }
    if (!store.worker) await loadWorker();
    if (found || store.problem || !store.loaded) {
      store.problem = '';
      store.loaded = true;
      changed();
    }
  } catch (error) {
    if (store.problem !== error.message) {
      store.problem = error.message;
      store.seq = error.status ? store.seq : 0;
      changed();
    }
  }
}

export async function loadWorker() {
  store.worker = await ask('api/worker');
  store.mode = store.worker.mode;
  changed();
}

let timer = 0;

/** Asks at once, and then again and again. */
export async function follow() {
  clearTimeout(timer);
  await poll();
  clearTimeout(timer);
  timer = setTimeout(follow, document.hidden ? HIDDEN_MS : SHOWN_MS);
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) follow();
});

/** Shows a message at the foot of the page: what was done, or why not. */
export function say(text, isProblem = false) {
  const toast = { text, isProblem, key: Math.random() };
  store.toasts = [...store.toasts.slice(-2), toast];
  changed();
  setTimeout(() => {
    store.toasts = store.toasts.filter((each) => each !== toast);
    changed();
  }, isProblem ? 12000 : 5000);
}

export const mayChange = () => store.mode === 'full';

/** Calls `load` now and every two seconds while the component is shown; `load` must not throw. */
export function useEvery(load, keys, milliseconds = SHOWN_MS) {
  useEffect(() => {
    let isOver = false;
    let next = 0;
    const turn = async () => {
      if (!document.hidden) await load(() => isOver);
      if (!isOver) next = setTimeout(turn, milliseconds);
    };
    turn();
    return () => {
      isOver = true;
      clearTimeout(next);
    };
  }, keys);
}
