/** What a lakehouse sink says of each of its tables, and what can be asked for: compaction, and a comparison with the source. */
import { html, useState } from './vendor/htm-preact.js';
import { address, mayChange, rest, say } from './api.js';
import { Timeline, useNotes } from './notes.js';
import { Facts, Scrolled, Silent } from './parts.js';
import { useVerification, Verification } from './verification.js';
import { bytes, date, time, whole } from './words.js';

const OPERATIONS = { c: 'created', r: 'read', u: 'updated', d: 'deleted', t: 'truncated' };
const number = (value) => (value === undefined || value === null ? '–' : whole(value));

export function Lake({ name, detail }) {
  const [turn, setTurn] = useState(0);
  const notes = useNotes(name, turn);
  const verification = useVerification(name);
  const [withTopics, setWithTopics] = useState(false);
  const { sink, tables } = detail;
  const isRunning = detail.target === 'STARTED';
  const compact = async (table) => {
    try {
      await rest(address(name, '/signals'), { method: 'POST', body: { type: 'compact', data: table ? { tables: [table] } : {} } });
      say(`${table || 'Every table'} is compacted between two batches.`);
      setTurn(turn + 1);
    } catch (error) {
      say(error.message, true);
    }
  };
  const buttons = (table) => html`<span class="buttons">
    <button type="button" data-control="verify-${table ? 'one' : 'all'}" class=${table ? 'small' : ''} aria-disabled=${verification.isRunning} aria-label="Verify ${table || 'all tables'}"
      onClick=${() => verification.begin(table, withTopics)}>${table ? 'Verify' : 'Verify all tables'}</button>
    <button type="button" data-control="compact-${table ? 'one' : 'all'}" class=${table ? 'small' : ''} disabled=${!isRunning} aria-label="Compact ${table || 'all tables'}"
      onClick=${() => compact(table)}>${table ? 'Compact' : 'Compact all tables'}</button></span>`;
  return html`<section aria-label="Tables">
    <${Silent} detail=${detail} />
    ${!tables.length && html`<p class="empty">No table is reported. Only the lakehouse sink reports tables, and each with its first batch.</p>`}
    ${sink['batches-total'] !== undefined && html`<${Facts} rows=${[
      ['Batches', `${whole(sink['batches-total'])}, ${whole(sink['batch-failures-total'] || 0)} failed`],
      ['Seconds a batch', sink['batches-total'] ? time(sink['batch-seconds-total'] / sink['batches-total']) : '–'],
      ['Behind', `${number(sink['lag-offsets'])} records, ${time((sink['lag-ms'] || 0) / 1000)}`],
      ['Rejected records', number(sink['records-rejected-total'])],
      ['Spark', sink['spark-session-starting'] ? 'starting' : `runs for ${time(sink['spark-session-uptime-seconds'])}`],
    ]} />`}
    ${mayChange() && html`<div class="tools">${buttons('')}
      <label><input type="checkbox" data-control="verify-topics" checked=${withTopics} onChange=${(event) => setWithTopics(event.target.checked)} /> verify the topics in between, too</label></div>`}
    <${Verification} verification=${verification} />
    ${tables.length > 0 && html`<${Scrolled} label="Figures of each table"><table class="figures">
      <thead><tr><th scope="col">Table</th><th scope="col">Applied</th><th scope="col">By operation</th><th scope="col">Behind</th>
        <th scope="col">Has everything until</th><th scope="col">Last commit</th><th scope="col">Commits</th><th scope="col">Files</th>
        <th scope="col">Size</th><th scope="col">Rejected</th><th scope="col">Schema changes</th>
        ${mayChange() && html`<th scope="col">Now</th>`}</tr></thead>
      <tbody>${tables.map((table) => html`<tr key=${table.table}><th scope="row">${table.table}</th>
        <td>${number(table['records-applied-total'])}</td>
        <td>${Object.entries(table.operations).map(([op, count]) => `${number(count)} ${OPERATIONS[op] || op}`).join(', ') || '–'}</td>
        <td>${number(table['lag-offsets'])} records</td>
        <td>${date(table['valid-through-timestamp-seconds'])}</td>
        <td>${date(table['last-commit-timestamp-seconds'])}<small>took ${time(table['last-apply-seconds'])}</small></td>
        <td>${number(table['commits-total'])}${table['commit-conflicts-total'] ? html`<small>${number(table['commit-conflicts-total'])} conflicts</small>` : ''}</td>
        <td>${number(table['data-files'])}${table['small-files'] ? html`<small>${number(table['small-files'])} small</small>` : ''}</td>
        <td>${bytes(table['size-bytes'])}</td>
        <td>${number(table['records-rejected-total'])}</td>
        <td>${Object.entries(table.schema_changes).map(([kind, count]) => `${number(count)} ${kind}`).join(', ') || '–'}</td>
        ${mayChange() && html`<td>${buttons(table.table)}</td>`}</tr>`)}</tbody>
    </table></${Scrolled}>`}
    <${Commits} tables=${tables} />
    <${Rejected} records=${detail.rejected || []} />
    <${Timeline} notes=${notes} empty="No table has been compacted since this worker started." />
  </section>`;
}

/** Of all tables; a table's last ten are known. */
const SHOWN_COMMITS = 50;

function Commits({ tables }) {
  const found = tables.flatMap((table) => (table.commits || []).map((commit) => ({ table: table.table, ...commit }))).sort((a, b) => b.at - a.at);
  if (!found.length) return null;
  return html`<details><summary>Last commits</summary><${Scrolled} label="Last commits"><table>
    <thead><tr><th scope="col">When</th><th scope="col">Table</th><th scope="col">Records</th><th scope="col">Took</th></tr></thead>
    <tbody>${found.slice(0, SHOWN_COMMITS).map((each) => html`<tr key=${`${each.table} ${each.at}`}><td class="word">${date(each.at)}</td><th scope="row">${each.table}</th>
      <td>${number(each.records)}${each.commits > 1 ? html`<small>in ${number(each.commits)} commits</small>` : ''}</td><td>${time(each.seconds)}</td></tr>`)}</tbody>
  </table></${Scrolled}></details>`;
}

function Rejected({ records }) {
  if (!records.length) return null;
  return html`<details open><summary>Last rejected records: ${records.length}</summary><${Scrolled} label="Rejected records"><table>
    <thead><tr><th scope="col">When</th><th scope="col">Table</th><th scope="col">Where from</th><th scope="col">Reason</th></tr></thead>
    <tbody>${records.map((each) => html`<tr key=${each.place}><td class="word">${date(each.at / 1000)}</td><td class="word">${each.table || '–'}</td><th scope="row">${each.place}</th>
      <td>${each.message || each.reason}</td></tr>`)}</tbody></table></${Scrolled}></details>`;
}
