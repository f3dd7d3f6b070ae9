/** What a lakehouse sink says of each of its tables. */
import { html } from './vendor/htm-preact.js';
import { Elsewhere, Facts, Scrolled } from './parts.js';
import { bytes, date, time, whole } from './words.js';

const OPERATIONS = { c: 'created', r: 'read', u: 'updated', d: 'deleted', t: 'truncated' };
const number = (value) => (value === undefined || value === null ? '–' : whole(value));

export function Lake({ detail }) {
  const { sink, tables } = detail;
  return html`<section aria-label="Tables">
    <${Elsewhere} detail=${detail} />
    ${!tables.length && html`<p class="empty">No table is reported. Only the lakehouse sink reports tables, and each with its first batch.</p>`}
    ${sink['batches-total'] !== undefined && html`<${Facts} rows=${[
      ['Batches', `${whole(sink['batches-total'])}, ${whole(sink['batch-failures-total'] || 0)} failed`],
      ['Seconds a batch', sink['batches-total'] ? time(sink['batch-seconds-total'] / sink['batches-total']) : '–'],
      ['Behind', `${number(sink['lag-offsets'])} records, ${time((sink['lag-ms'] || 0) / 1000)}`],
      ['Rejected records', number(sink['records-rejected-total'])],
      ['Spark', sink['spark-session-starting'] ? 'starting' : `runs for ${time(sink['spark-session-uptime-seconds'])}`],
    ]} />`}
    ${tables.length > 0 && html`<${Scrolled} label="Tables"><table>
      <thead><tr><th scope="col">Table</th><th scope="col">Applied</th><th scope="col">By operation</th><th scope="col">Behind</th>
        <th scope="col">Has everything until</th><th scope="col">Last commit</th><th scope="col">Commits</th><th scope="col">Files</th>
        <th scope="col">Size</th><th scope="col">Rejected</th><th scope="col">Schema changes</th></tr></thead>
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
        <td>${Object.entries(table.schema_changes).map(([kind, count]) => `${number(count)} ${kind}`).join(', ') || '–'}</td></tr>`)}</tbody>
    </table></${Scrolled}>`}
  </section>`;
}
