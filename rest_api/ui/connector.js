/** One connector: its head, its buttons and the views below them. */
import { html, useState } from './vendor/htm-preact.js';
import { address, ask, mayChange, useEvery, useStore } from './api.js';
import { Buttons, offered } from './actions.js';
import { Config } from './config.js';
import { Lake } from './lake.js';
import { Log } from './log.js';
import { Offsets } from './offsets.js';
import { Overview } from './overview.js';
import { Pill } from './parts.js';
import { Snapshot } from './snapshot.js';
import { Tasks } from './tasks.js';
import { shortClass } from './words.js';

const VIEWS = [
  ['overview', 'Overview', Overview],
  ['tasks', 'Tasks and errors', Tasks],
  ['snapshot', 'Snapshot', Snapshot, 'source'],
  ['tables', 'Tables', Lake, 'sink', (detail) => detail.tables.length > 0 || detail.class.includes('Lakehouse')],
  ['offsets', 'Offsets', Offsets],
  ['config', 'Configuration', Config],
  ['log', 'Log', Log],
];

/** What the workers know of a connector, asked for again and again. */
export function useDetail(name) {
  const [found, setFound] = useState({ detail: null, problem: '' });
  useEvery(async (isOver) => {
    try {
      const detail = await ask(`api/${address(name)}`);
      if (!isOver()) setFound({ detail, problem: '' });
    } catch (error) {
      if (!isOver()) setFound((before) => ({ detail: error.status === 404 ? null : before.detail, problem: error.message }));
    }
  }, [name]);
  return found;
}

export function Connector({ name, view, go }) {
  const { detail, problem } = useDetail(name);
  const { worker } = useStore();
  const known = VIEWS.filter(([, , , kind, isFor]) => !kind || !detail || (detail.type === kind && (!isFor || isFor(detail))));
  const [key, , View] = known.find(([each]) => each === view) || known[0];
  const href = (each) => `#/connector/${encodeURIComponent(name)}/${each}`;
  return html`<main id="main">
    <nav class="crumbs" aria-label="Path"><span aria-hidden="true">← </span><a href="#/">Connectors</a></nav>
    <div class="head">
      <h1>${name}</h1>
      ${detail && html`<${Pill} verdict=${detail.verdict} /><span class="muted">${detail.reason}</span>`}
    </div>
    ${detail && html`<p class="muted sub">${shortClass(detail.class)} ${detail.type}${worker && worker.group ? ` on worker ${detail.worker || '–'}` : ''}</p>
      <div class="tools"><${Buttons} names=${[name]} actions=${[...offered(detail), ...(mayChange() ? ['delete'] : [])]}
        onDone=${(action, isDone) => action === 'delete' && isDone && go('#/')} /></div>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <nav class="tabs" aria-label="Views of ${name}"><ul>
      ${known.map(([each, title]) => html`<li key=${each}><a href=${href(each)} aria-current=${each === key ? 'page' : null}>${title}</a></li>`)}
    </ul></nav>
    ${detail ? html`<${View} key=${key} name=${name} detail=${detail} />` : !problem && html`<p class="loading">Loading …</p>`}
  </main>`;
}
