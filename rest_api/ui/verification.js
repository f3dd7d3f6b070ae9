/** A comparison of lakehouse tables with their sources, made by this worker: begun, followed, cancelled, and what it has found. */
import { html, useState } from './vendor/htm-preact.js';
import { address, ask, mayChange, say, useEvery } from './api.js';
import { Scrolled } from './parts.js';
import { date, time, whole } from './words.js';

const path = (name) => `api/${address(name, '/verification')}`;

/** The last comparison of a connector's tables: `shown` is the worker's answer, null when there was none. */
export function useVerification(name) {
  const [shown, setShown] = useState(null);
  useEvery(async (isOver) => {
    try {
      const found = await ask(path(name));
      if (!isOver()) setShown(found);
    } catch {
      // the connector is just being deleted, or the worker does not answer, which the page says elsewhere
    }
  }, [name]);
  const send = async (where, method) => {
    try {
      setShown(await ask(where, { method }));
    } catch (error) {
      say(error.message, true);
    }
  };
  const isRunning = shown !== null && shown.state === 'running';
  return {
    shown,
    isRunning,
    begin: (table, topics) => !isRunning && send(`${path(name)}?topics=${topics}${table ? `&table=${encodeURIComponent(table)}` : ''}`, 'POST'),
    cancel: () => send(path(name), 'DELETE'),
  };
}

const PHASES = { table: 'reading the table', source: 'reading the source', settling: 'waiting for keys that differ to settle' };

export function Verification({ verification }) {
  const { shown, isRunning, cancel } = verification;
  if (!shown) return null;
  const { state, results, error, progress } = shown;
  const wrong = results.filter((each) => each.verdict === 'different').length;
  return html`<section class="card" aria-label="Comparison with the source"><h2>Compared with the source</h2>
    <p role="status">${headline(shown, wrong)}
      ${isRunning && mayChange() && html` <button type="button" class="small" data-control="cancel-verification" onClick=${cancel}>Cancel</button>`}</p>
    ${progress && html`<p class="whole"><${Share} progress=${progress} /></p>`}
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    ${results.length > 0 && html`<${Scrolled} label="Outcome of the comparison"><table>
      <thead><tr><th scope="col">Table or topic</th><th scope="col">Outcome</th><th scope="col">Rows of the source</th><th scope="col">Its own rows</th>
        <th scope="col">Missing</th><th scope="col">Extra</th><th scope="col">Different</th><th scope="col">Notes</th></tr></thead>
      <tbody>${results.map((each) => html`<${Row} key=${`${each.source} ${each.side} ${nameOf(each)}`} result=${each} />`)}</tbody></table></${Scrolled}>`}
    ${results.flatMap((each) => each.differences || []).length > 0 && html`<${Differences} results=${results} />`}
    ${!isRunning && !shown.topics && html`<p class="muted">The tables were compared with their source. The topics in between were not read.</p>`}
    ${wrong > 0 && !results.some((each) => each.differences) && html`<p class="note">To see which rows differ, set the worker's
      property <code>rest.ui.records=true</code>, or run <code>connect-py verify</code>.</p>`}
  </section>`;
}

function headline({ state, began, ended, results, tables, topics }, wrong) {
  const what = `${tables.length ? tables.join(', ') : 'All tables'}${topics ? ', and the topics in between' : ''}`;
  if (state === 'running') return `${what}: being compared since ${date(began)}.`;
  const took = `${date(ended)}, after ${time(ended - began)}`;
  if (state === 'cancelled') return `${what}: cancelled ${took}.`;
  if (state === 'failed') return `${what}: given up ${took}.`;
  const compared = results.filter(nameOf).length;
  return wrong ? `${what}: ${wrong} of ${compared} differ. Done ${took}.` : `${what}: compared ${took}.`;
}

function Share({ progress }) {
  const { table, phase, rows, expected } = progress;
  const isKnown = expected !== null && expected > 0 && rows <= expected;
  return html`<span class="bar"><progress aria-label="Comparison of ${table}" max="1" ...${isKnown ? { value: rows / expected } : {}}></progress>
    <span>${table}: ${PHASES[phase]}, ${whole(rows)} ${phase === 'settling' ? 'keys' : 'rows'}${isKnown ? ` of about ${whole(expected)}` : ''}</span></span>`;
}

/** The table or the topic that a result is about; nothing where there was none to compare. */
const nameOf = (result) => result.table || result.topic;

const TONES = { equal: 'good', different: 'bad' };

function Row({ result }) {
  if (!nameOf(result)) {
    return html`<tr><th scope="row">${result.source} → ${result.sink}</th><td>${result.verdict}</td><td colspan="6"></td></tr>`;
  }
  const columns = Object.keys(result.columns);
  const notes = [...(result.problem ? [result.problem] : []), ...result.notes, ...(columns.length ? [`columns that differ: ${columns.join(', ')}`] : [])];
  return html`<tr><th scope="row">${result.topic ? `topic ${result.topic}` : result.table}<small>${result.sources.join(', ')}</small></th>
    <td><span class="pill ${TONES[result.verdict] || ''}">${result.verdict}</span></td>
    <td>${whole(result.source_rows)}</td><td>${whole(result.topic ? result.topic_rows : result.table_rows)}</td>
    <td>${whole(result.missing)}</td><td>${whole(result.extra)}</td><td>${whole(result.different)}</td>
    <td>${notes.join('; ') || '–'}<small>took ${time(result.seconds)}</small></td></tr>`;
}

const row = (values) => (values === null ? 'no row' : Object.entries(values).map(([column, value]) => `${column}=${JSON.stringify(value)}`).join(', '));

function Differences({ results }) {
  return html`<details><summary>Rows that differ, up to twenty of a table</summary><${Scrolled} label="Rows that differ"><table>
    <thead><tr><th scope="col">Table</th><th scope="col">Kind</th><th scope="col">Key</th><th scope="col">Source</th><th scope="col">Other row</th></tr></thead>
    <tbody>${results.flatMap((each) => (each.differences || []).map((found, at) => html`<tr key=${`${each.side} ${nameOf(each)} ${at}`}>
      <th scope="row">${each.topic ? `topic ${each.topic}` : each.table}</th><td>${found.kind}</td><td>${row(found.key)}</td><td>${row(found.source)}</td><td>${row(found[each.side])}</td></tr>`))}</tbody>
  </table></${Scrolled}></details>`;
}
