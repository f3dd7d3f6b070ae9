/** All connectors, what is wrong first. */
import { html, useState } from './vendor/htm-preact.js';
import { mayChange, useStore } from './api.js';
import { Buttons, offered } from './actions.js';
import { Bar, Pill, Spark, Statement, snapshotWords } from './parts.js';
import { behind, bytes, rate, severity, shortClass, tone } from './words.js';

/** How many rows are drawn before "show all": so many take less than a tenth of a second. */
const FIRST = 200;

const COUNTED = [['failed', 'bad'], ['warn', 'warn'], ['good', 'good'], ['quiet', 'quiet']];
const WORDS = { bad: 'failed or stalled', warn: 'late', good: 'fine', quiet: 'idle or stopped' };

export function List({ query, setQuery }) {
  const { connectors, loaded } = useStore();
  const [chosen, setChosen] = useState(new Set());
  const [all, setAll] = useState(false);
  const search = query.get('q') || '';
  const filter = query.get('state') || '';
  const entries = Object.entries(connectors).sort(([a, x], [b, y]) => severity(x.verdict) - severity(y.verdict) || a.localeCompare(b));
  const text = search.toLowerCase();
  const found = entries.filter(([name, entry]) => (!text || `${name} ${entry.class} ${entry.verdict}`.toLowerCase().includes(text))
    && (!filter || tone(entry.verdict) === filter));
  const shown = all ? found : found.slice(0, FIRST);
  const picked = found.map(([name]) => name).filter((name) => chosen.has(name));
  const choose = (name, isOn) => {
    const next = new Set(chosen);
    if (isOn) next.add(name); else next.delete(name);
    setChosen(next);
  };
  return html`<main id="main">
    <div class="head">
      <h1>Connectors</h1>
      ${mayChange() && html`<a class="button primary" href="#/new">New connector</a>`}
    </div>
    <div class="tools">
      <${Counters} entries=${entries} filter=${filter} search=${search} />
      <label class="search"><span class="hidden">Search connectors</span>
        <input type="search" data-control="search-connectors" placeholder="Search name, class or state" value=${search} onInput=${(event) => setQuery(asked(event.target.value, filter))} /></label>
      ${mayChange() && picked.length > 0 && html`<span class="bulk"><span>${picked.length} chosen</span>
        <${Buttons} names=${picked} actions=${['pause', 'resume', 'stop', 'restart_failed', 'restart', 'delete']} isSmall=${true} /></span>`}
    </div>
    ${loaded && !entries.length && html`<p class="empty">There is no connector yet. ${mayChange() && html`<a href="#/new">Make the first one</a>.`}</p>`}
    ${entries.length > 0 && !found.length && html`<p class="empty">No connector matches. <a href="#/">Show all</a>.</p>`}
    ${shown.length > 0 && html`<table class="connectors">
      <thead><tr>
        ${mayChange() && html`<td></td>`}
        <th scope="col">Connector</th><th scope="col">State</th><th scope="col">Tasks</th><th scope="col">Records</th>
        <th scope="col">Behind</th><th scope="col">Snapshot</th>${mayChange() && html`<th scope="col">Actions</th>`}
      </tr></thead>
      <tbody>${shown.map(([name, entry]) => html`<${Row} key=${name} name=${name} entry=${entry} isChosen=${chosen.has(name)} choose=${choose} />`)}</tbody>
    </table>`}
    ${found.length > shown.length && html`<p><button type="button" data-control="show-all" onClick=${() => setAll(true)}>Show all ${found.length}</button></p>`}
  </main>`;
}

/** What is searched and filtered, as the address says it. */
function asked(search, filter) {
  const params = new URLSearchParams();
  if (search) params.set('q', search);
  if (filter) params.set('state', filter);
  return params.toString() ? `?${params}` : '';
}

function Counters({ entries, filter, search }) {
  const counts = {};
  let failedTasks = 0;
  for (const [, entry] of entries) {
    counts[tone(entry.verdict)] = (counts[tone(entry.verdict)] || 0) + 1;
    failedTasks += entry.tasks.FAILED || 0;
  }
  const link = (name) => `#/${asked(search, name)}`;
  return html`<ul class="counters">
    <li><a href=${link('')} aria-current=${filter === '' ? 'true' : null}><b>${entries.length}</b> in all</a></li>
    ${COUNTED.map(([, name]) => html`<li key=${name}><a class=${name} href=${link(name)} aria-current=${filter === name ? 'true' : null}>
      <b>${counts[name] || 0}</b> ${WORDS[name]}</a></li>`)}
    ${failedTasks > 0 && html`<li class="plain bad"><b>${failedTasks}</b> failed task${failedTasks > 1 ? 's' : ''}</li>`}
  </ul>`;
}

/** What a line says around its statement, which is shown below it: three broken connectors are to fit a small screen. */
const without = (line, statement) => (statement && line.includes(statement) ? line.replace(statement, () => '…') : line);

function Row({ name, entry, isChosen, choose }) {
  const href = `#/connector/${encodeURIComponent(name)}`;
  const whole = Object.values(entry.tasks).reduce((sum, count) => sum + count, 0);
  const { trouble, snapshot } = entry;
  const columns = mayChange() ? 8 : 6;
  return [html`<tr class="row ${tone(entry.verdict)} ${trouble ? 'with-trouble' : ''}">
    ${mayChange() && html`<td class="choice"><input type="checkbox" data-control="choose-connector" aria-label="Choose ${name}" checked=${isChosen}
      onChange=${(event) => choose(name, event.target.checked)} /></td>`}
    <th scope="row" class="name"><a href=${href}>${name}</a><small>${shortClass(entry.class)} ${entry.type}</small></th>
    <td data-label="State"><${Pill} verdict=${entry.verdict} />${entry.reason && html`<small>${entry.reason}</small>`}</td>
    <td data-label="Tasks">${whole ? `${entry.tasks.RUNNING || 0} of ${whole}` : '–'}</td>
    <td data-label="Records"><span class="rate">${rate(entry.rate)}</span><${Spark} values=${entry.trend} label="records a second, last five minutes" /></td>
    <td data-label="Behind">${behind(entry.behind)}${entry.behind && entry.behind.retained_bytes > 1e6
      && html`<small>${bytes(entry.behind.retained_bytes)} of log kept</small>`}</td>
    <td data-label="Snapshot">${snapshot && snapshot.state === 'RUNNING'
      ? html`<${Bar} rows=${snapshot.rows} estimate=${snapshot.estimated_rows} label="Snapshot of ${name}" /><small>${snapshotWords(snapshot)}</small>`
      : snapshot ? snapshot.state.toLowerCase() : '–'}</td>
    ${mayChange() && html`<td class="actions"><${Buttons} names=${[name]} actions=${offered(entry)} isSmall=${true} /></td>`}
  </tr>`,
  trouble && html`<tr class="trouble"><td colspan=${columns}>
    <p><b>${trouble.task === null ? 'Connector' : `Task ${trouble.task}`}:</b> ${without(trouble.line, trouble.statement)}
      ${' '}<a href="${href}/tasks" aria-label="Whole error of ${name}">Whole error</a></p>
    <${Statement} text=${trouble.statement} />
  </td></tr>`];
}
