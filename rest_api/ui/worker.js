/** The worker and its group: what it is, its properties, its loggers, what is installed. */
import { html, useEffect, useState } from './vendor/htm-preact.js';
import { loadWorker, mayChange, rest, say, useEvery, useStore } from './api.js';
import { Facts, Pill, Scrolled } from './parts.js';
import { bytes, date, time, whole } from './words.js';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'OFF'];

export function Worker() {
  const { worker, connectors } = useStore();
  const [health, setHealth] = useState(null);
  const [plugins, setPlugins] = useState([]);
  useEvery(async (isOver) => {
    const found = await rest('health').catch((error) => ({ status: 'unhealthy', message: error.message }));
    await loadWorker().catch(() => null);
    if (!isOver()) setHealth(found);
  }, [], 10000);
  useEffect(() => {
    rest('connector-plugins?connectorsOnly=false').then(setPlugins, () => null);
  }, []);
  if (!worker) return html`<main id="main"><h1>Worker</h1><p class="loading">Loading …</p></main>`;
  return html`<main id="main">
    <div class="head"><h1>Worker ${worker.worker}</h1>${health && html`<${Pill} verdict=${health.status === 'healthy' ? 'healthy' : 'failed'} />`}</div>
    ${health && health.status !== 'healthy' && html`<p class="problem" role="alert">${health.message}</p>`}
    <${Facts} rows=${[
      ['Version', `connect-py ${worker.product_version}`],
      ['Behaves as', `Kafka Connect ${worker.version}`],
      ['Kafka cluster', worker.cluster],
      ['Group', worker.group || 'none: a standalone worker'],
      worker.group && ['Leader', worker.leader ? 'this worker' : worker.leader_url || 'not known'],
      worker.group && ['Generation', whole(worker.generation)],
      ['Connectors', whole(Object.keys(connectors).length)],
      ['Memory of the worker', bytes(worker.memory_bytes)],
      ['Started', `${date(worker.began_ms / 1000)}, ${time((Date.now() - worker.began_ms) / 1000)} ago`],
    ]} />
    <p><a href="docs/">Documentation</a> · <a href="../docs">Reference of the REST API</a> · <a href="../metrics">Metrics</a></p>
    <h2>Workers of the group</h2>
    <${Scrolled} label="Workers"><table><thead><tr><th scope="col">Worker</th><th scope="col">Connectors</th><th scope="col">Tasks</th></tr></thead>
      <tbody>${Object.entries(worker.workers).map(([id, counts]) => html`<tr key=${id}><th scope="row">${id === worker.worker ? `${id} (this one)`
        : html`<a href="${worker.scheme}://${id}/ui/">${id}</a>`}</th><td>${counts.connectors}</td><td>${counts.tasks}</td></tr>`)}</tbody></table></${Scrolled}>
    <p class="muted">As the states of connectors and tasks name them. A worker without either is not listed.</p>
    <${Loggers} />
    <h2>Properties</h2>
    <p class="muted">As the worker was given them; secrets are hidden.</p>
    <${Properties} label="Properties" rows=${worker.properties.filter((each) => each.origin !== 'default')} />
    <${Defaults} rows=${worker.properties.filter((each) => each.origin === 'default')} />
    <h2>Plugins</h2>
    <details><summary>${plugins.length} plugins</summary><${Scrolled} label="Plugins"><table>
      <thead><tr><th scope="col">Class</th><th scope="col">Kind</th><th scope="col">Version</th></tr></thead>
      <tbody>${plugins.map((plugin) => html`<tr key=${plugin.class + plugin.type}><th scope="row">${plugin.class}</th><td>${plugin.type}</td><td>${plugin.version || '–'}</td></tr>`)}</tbody></table></${Scrolled}></details>
  </main>`;
}

/** Where a value is from, in words. */
const origin = ({ origin: kind, place }) => (kind === 'environment' ? html`variable <code>${place}</code>` : kind === 'file' ? html`file <code>${place}</code>` : 'default');

const Properties = ({ label, rows }) => html`<${Scrolled} label=${label}><table>
  <thead><tr><th scope="col">Property</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
  <tbody>${rows.map((each) => html`<tr key=${each.name}><th scope="row"><code>${each.name}</code></th>
    <td>${each.value === null ? html`<i>none</i>` : each.value === '' ? html`<i>empty</i>` : each.value}</td><td>${origin(each)}</td></tr>`)}</tbody></table></${Scrolled}>`;

const Defaults = ({ rows }) => html`<details><summary>${rows.length} properties have their default</summary>
  <${Properties} label="Properties with their default" rows=${rows} /></details>`;

function Loggers() {
  const [found, setFound] = useState(null);
  const [name, setName] = useState('connectors');
  const load = () => rest('admin/loggers').then(setFound, () => setFound(null));
  useEffect(() => {
    load();
  }, []);
  if (!found) return null; // /admin is on other listeners, or nowhere
  const put = async (logger, level) => {
    try {
      await rest(`admin/loggers/${encodeURIComponent(logger)}`, { method: 'PUT', body: { level } });
      say(`${logger} logs ${level} and worse on this worker, until it starts again.`);
    } catch (error) {
      say(error.message, true);
    }
    load();
  };
  const choice = (logger, level) => html`<select data-control="logger-level" aria-label="Level of ${logger}" disabled=${!mayChange()} value=${level || 'INFO'}
    onChange=${(event) => put(logger, event.target.value)}>${LEVELS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select>`;
  return html`<h2>Loggers</h2>
    <details><summary>${Object.keys(found).length} loggers</summary><${Scrolled} label="Loggers"><table><thead><tr><th scope="col">Logger</th><th scope="col">Level</th></tr></thead>
      <tbody>${Object.entries(found).map(([logger, { level }]) => html`<tr key=${logger}><th scope="row">${logger}</th><td>${choice(logger, level)}</td></tr>`)}</tbody></table></${Scrolled}>
    ${mayChange() && html`<form class="tools" onSubmit=${(event) => { event.preventDefault(); put(name, 'DEBUG'); }}>
      <label>Another logger <input type="text" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <button type="submit" class="small" data-control="set-logger">Set to DEBUG</button></form>`}</details>`;
}
