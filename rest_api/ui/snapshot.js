/** Snapshots: each table with rate and what is left, what was said of them, and the signals that start, pause and end them. */
import { html, useState } from './vendor/htm-preact.js';
import { address, mayChange, rest, say } from './api.js';
import { Timeline, useNotes } from './notes.js';
import { Bar, Scrolled, Silent } from './parts.js';
import { rate, time, whole } from './words.js';

export function Snapshot({ name, detail }) {
  const [turn, setTurn] = useState(0);
  const notes = useNotes(name, turn);
  const tables = Object.values(detail.snapshots).flatMap(asPaused);
  return html`<section aria-label="Snapshot">
    <${Silent} detail=${detail} />
    <${Whole} snapshot=${detail.snapshot} />
    ${Object.entries(detail.snapshots).filter(([, each]) => each.paused_reason).map(([task, each]) => html`<p key=${task} class="remedy" role="status">
      <b>Paused for ${time(each.paused_seconds)}:</b> ${each.paused_reason.replace(/\.?$/, '.')} Streaming continues, and nothing is lost. “Resume snapshot” continues it.</p>`)}
    ${tables.length > 0 && html`<${Scrolled} label="Tables of the snapshot"><table>
      <thead><tr><th scope="col">Table</th><th scope="col">State</th><th scope="col">Rows</th><th scope="col">Estimated</th>
        <th scope="col">Done</th><th scope="col">Rate</th><th scope="col">Left</th></tr></thead>
      <tbody>${tables.map((table) => html`<tr key=${table.table}><th scope="row">${table.table}</th><td>${table.state.toLowerCase()}</td>
        <td>${whole(table.rows)}</td><td>${table.estimated_rows === undefined ? '–' : whole(table.estimated_rows)}</td>
        <td>${table.state === 'COMPLETED' ? 'all' : html`<${Bar} rows=${table.rows} estimate=${table.estimated_rows} label="Snapshot of ${table.table}" />`}</td>
        <td>${table.rows_per_second === undefined ? '–' : rate(table.rows_per_second)}</td>
        <td>${left(table)}</td></tr>`)}</tbody>
    </table></${Scrolled}>`}
    ${mayChange() && html`<${Signals} name=${name} tables=${tables} isRunning=${detail.target === 'STARTED'} onSent=${() => setTurn(turn + 1)} />`}
    <${Timeline} notes=${notes} empty="No snapshot has reported anything since this worker started." />
  </section>`;
}

/** The tables of a snapshot. While it is paused none has a rate, though one was begun. */
const asPaused = ({ state, tables }) => (state !== 'PAUSED' ? tables
  : tables.map((table) => (table.state === 'RUNNING' ? { ...table, state, rows_per_second: undefined, seconds_left: undefined } : table)));

/** How long a table still takes. */
function left(table) {
  if (table.seconds_left !== undefined) return time(table.seconds_left);
  return table.state !== 'COMPLETED' && table.estimated_rows !== undefined && table.rows >= table.estimated_rows && table.rows > 0 ? 'more rows than estimated' : '–';
}

const STATES = { RUNNING: 'Running', PAUSED: 'Paused', COMPLETED: 'Completed' };

function Whole({ snapshot }) {
  if (!snapshot) return html`<p class="empty">No snapshot is reported. What has ended is found under “What happened”.</p>`;
  const parts = [`${snapshot.tables_done} of ${snapshot.tables} tables`, `${whole(snapshot.rows)} rows`];
  if (snapshot.rows_per_second) parts.push(rate(snapshot.rows_per_second));
  if (snapshot.seconds_left !== undefined) parts.push(`about ${time(snapshot.seconds_left)} left`);
  return html`<p class="whole"><${Bar} rows=${snapshot.rows} estimate=${snapshot.estimated_rows} label="The whole snapshot" isDone=${snapshot.state === 'COMPLETED'} />
    <span>${STATES[snapshot.state]}: ${parts.join(', ')}</span></p>`;
}

/** Ad-hoc snapshots: what POST …/signals takes. */
function Signals({ name, tables, isRunning, onSent }) {
  const [chosen, setChosen] = useState(new Set());
  const [others, setOthers] = useState('');
  const [kind, setKind] = useState('incremental');
  const [condition, setCondition] = useState('');
  const send = async (type, data) => {
    try {
      await rest(address(name, '/signals'), { method: 'POST', body: { type, data } });
      say(`The task has taken the signal ${type}.`);
      onSent();
    } catch (error) {
      say(error.message, true);
    }
  };
  const names = [...chosen, ...others.split(/[\s,]+/).filter(Boolean)];
  const start = (event) => {
    event.preventDefault();
    const data = { 'data-collections': names, type: kind };
    if (condition) data['additional-conditions'] = names.map((each) => ({ 'data-collection': each, filter: condition }));
    send('execute-snapshot', data);
  };
  const toggle = (table, isOn) => {
    const next = new Set(chosen);
    if (isOn) next.add(table); else next.delete(table);
    setChosen(next);
  };
  return html`<form class="card" onSubmit=${start}><h2>Read tables again</h2>
    ${!isRunning && html`<p class="note">The connector does not run, and takes no signals.</p>`}
    ${tables.length > 0 && html`<fieldset class="choice-list"><legend>Tables</legend>${tables.map((table) => html`<label key=${table.table}>
      <input type="checkbox" data-control="choose-table" checked=${chosen.has(table.table)} onChange=${(event) => toggle(table.table, event.target.checked)} /> ${table.table}</label>`)}</fieldset>`}
    <label class="field"><span>${tables.length ? 'Other tables' : 'Tables'}, such as <code>public.orders</code>; regular expressions of whole names</span>
      <input type="text" value=${others} onInput=${(event) => setOthers(event.target.value)} /></label>
    <fieldset class="choice-row"><legend>How</legend>
      <label><input type="radio" name="kind" data-control="incremental" checked=${kind === 'incremental'} onChange=${() => setKind('incremental')} /> incremental: next to the stream</label>
      <label><input type="radio" name="kind" data-control="blocking" checked=${kind === 'blocking'} onChange=${() => setKind('blocking')} /> blocking: the stream waits</label></fieldset>
    <label class="field"><span>Only rows with (a condition of SQL; a whole SELECT for a blocking one)</span>
      <input type="text" value=${condition} onInput=${(event) => setCondition(event.target.value)} /></label>
    <div class="buttons"><button type="submit" class="primary" data-control="start-snapshot" disabled=${!names.length || !isRunning}>Start snapshot</button>
      <button type="button" data-control="pause-snapshot" disabled=${!isRunning} onClick=${() => send('pause-snapshot', {})}>Pause snapshot</button>
      <button type="button" data-control="resume-snapshot" disabled=${!isRunning} onClick=${() => send('resume-snapshot', {})}>Resume snapshot</button>
      <button type="button" data-control="stop-snapshot" disabled=${!isRunning} onClick=${() => send('stop-snapshot', { type: 'incremental' })}>Stop snapshot</button></div>
  </form>`;
}
