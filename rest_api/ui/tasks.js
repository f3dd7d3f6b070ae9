/** Tasks, what failed and why: what to do first, then the causes, then the calls. */
import { html } from './vendor/htm-preact.js';
import { address, follow, mayChange, rest, say } from './api.js';
import { Facts, Pill, Scrolled, Silent, Statement } from './parts.js';
import { bytes, date, rate, whole } from './words.js';

export function Tasks({ name, detail }) {
  const restart = async (task) => {
    try {
      await rest(address(name, `/tasks/${task}/restart`), { method: 'POST' });
      say(`Task ${task} is being restarted.`);
    } catch (error) {
      say(error.message, true);
    }
    follow();
  };
  return html`<section aria-label="Tasks and errors">
    <${Silent} detail=${detail} />
    ${detail.trace && html`<article class="card bad"><h2>The connector</h2><${Trace} text=${detail.trace} statement=${detail.trouble && detail.trouble.statement} /></article>`}
    ${!detail.task_list.length && html`<p class="empty">There are no tasks: ${detail.target === 'STOPPED' ? 'the connector is stopped' : 'the connector has made none yet'}.</p>`}
    ${detail.task_list.map((task) => html`<article key=${task.task} class="card ${task.state === 'FAILED' ? 'bad' : ''}">
      <div class="head"><h2>Task ${task.task}</h2><${Pill} verdict=${task.state.toLowerCase()} />
        ${mayChange() && html`<button type="button" class="small" data-control="restart-task" onClick=${() => restart(task.task)}>Restart task ${task.task}</button>`}</div>
      ${task.trace && html`<${Trace} text=${task.trace} statement=${task.statement} />`}
      <${Facts} rows=${figures(task)} />
      <${Skipped} records=${task.skipped || []} />
      ${task.restarts && html`<${Restarts} found=${task.restarts} />`}
      <${States} events=${task.events || []} />
    </article>`)}
  </section>`;
}

function figures(task) {
  const { latest, errors } = task;
  const count = (name) => errors[name] || 0;
  return [
    ['Worker', task.worker],
    task.version && ['Version', task.version],
    latest.records_out !== undefined && ['Records', rate(latest.records_out)],
    latest.rss_bytes !== undefined && ['Memory', bytes(latest.rss_bytes)],
    latest.cpu !== undefined && ['CPU', `${Math.round(latest.cpu * 100)} %`],
    task.here && ['Records that failed', whole(count('total-record-errors'))],
    task.here && ['Skipped', whole(count('total-records-skipped'))],
    task.here && ['Tried again', whole(count('total-retries'))],
    task.here && count('deadletterqueue-produce-requests') > 0
      && ['Dead letters', `${whole(count('deadletterqueue-produce-requests'))}, ${whole(count('deadletterqueue-produce-failures'))} not written`],
    count('last-error-timestamp') > 0 && ['Last error', date(count('last-error-timestamp') / 1000)],
  ];
}

/** A trace: lines without a tab are causes; of those with one, calls begin with "at", the others say what to do. */
function Trace({ text, statement }) {
  const lines = text.split('\n').filter((line) => line.trim());
  const causes = lines.filter((line) => !line.startsWith('\t'));
  const notes = lines.filter((line) => line.startsWith('\t') && !line.startsWith('\tat ')).map((line) => line.trim());
  const calls = lines.length - causes.length - notes.length;
  return html`<div class="trace">
    ${statement && html`<p><b>Run at the database:</b></p>`}
    <${Statement} text=${statement} />
    ${notes.map((note) => html`<p class="remedy">${note}</p>`)}
    <ol class="causes">${causes.map((cause, at) => html`<li key=${at}>${inParts(cause)}</li>`)}</ol>
    <details><summary>Whole trace, ${calls} call${calls === 1 ? '' : 's'}</summary>
      <${Scrolled} label="Trace"><pre>${text}</pre></${Scrolled}></details>
  </div>`;
}

/** "Caused by: package.Class: text" as text first. */
function inParts(cause) {
  const plain = cause.replace(/^Caused by: /, '');
  const at = plain.indexOf(': ');
  return at < 0 ? plain : [plain.slice(at + 2), html` <small>${plain.slice(0, at)}</small>`];
}

/** Where the last records were that have been left out. */
function Skipped({ records }) {
  if (!records.length) return null;
  return html`<details open><summary>Last records left out: ${records.length}</summary><${Scrolled} label="Records left out"><table>
    <thead><tr><th scope="col">When</th><th scope="col">Where from</th><th scope="col">Stage</th><th scope="col">Error</th><th scope="col">What became of it</th></tr></thead>
    <tbody>${records.map((each, at) => html`<tr key=${at}><td class="word">${date(each.at / 1000)}</td><th scope="row">${each.place}</th>
      <td class="word">${each.stage.toLowerCase().replace(/_/g, ' ')}</td><td>${each.message ? `${each.message} ` : ''}<span class="word">${each.error.split('.').pop()}</span></td>
      <td>${each.letter ? `dead letter in ${each.letter}` : 'skipped'}</td></tr>`)}</tbody></table></${Scrolled}>
    ${!records.some((each) => each.message) && html`<p class="muted">What is wrong with a record may name its values. To see it, set the worker's property <code>rest.ui.records=true</code>.</p>`}</details>`;
}

/** What `task.restart.policy` has done. */
function Restarts({ found }) {
  const most = found.max_attempts < 0 ? '' : ` of ${whole(found.max_attempts)}`;
  return html`<p>Restarts after failures, by <code>task.restart.policy</code>: ${whole(found.attempts || 0)}${most} in a row.
    ${found.next_at ? ` The next one is at ${date(Date.parse(found.next_at) / 1000)}.` : ''}</p>
    ${(found.history || []).length > 0 && html`<ol class="timeline">${[...found.history].reverse().map((each, at) => html`<li key=${at}>
      <time>${date(Date.parse(each.at) / 1000)}</time> ${each.failure}</li>`)}</ol>`}`;
}

/** The last states of a task, the newest first. */
function States({ events }) {
  if (!events.length) return null;
  const starts = events.filter((each) => each.state === 'RESTARTING').length;
  return html`<details><summary>Last states${starts ? `, ${whole(starts)} restart${starts === 1 ? '' : 's'}` : ''}</summary>
    <ol class="timeline">${[...events].reverse().map((each, at) => html`<li key=${at}><time>${date(each.at)}</time> <b>${each.state.toLowerCase()}</b>
      ${each.why && html`<small>${each.why.replace(/^(\w+\.)+\w+: /, '')}</small>`}</li>`)}</ol>
    <p class="muted">Since this task's worker has started.</p></details>`;
}
