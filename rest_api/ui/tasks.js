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
        ${mayChange() && html`<button type="button" class="small" onClick=${() => restart(task.task)}>Restart task ${task.task}</button>`}</div>
      ${task.trace && html`<${Trace} text=${task.trace} statement=${task.statement} />`}
      <${Facts} rows=${figures(task)} />
      ${task.restarts && html`<${Restarts} found=${task.restarts} />`}
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

function Restarts({ found }) {
  const history = found.history || found.failures || [];
  return html`<details><summary>Restarts after failures: ${whole(found.attempts || 0)}</summary>
    <${Scrolled} label="Restarts"><pre>${JSON.stringify(history.length ? history : found, null, 2)}</pre></${Scrolled}></details>`;
}
