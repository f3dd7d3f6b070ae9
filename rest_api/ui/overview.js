/** How a connector is doing: four plots over one time, and what its source says of its log. */
import { html, useMemo, useState } from './vendor/htm-preact.js';
import { address, ask, useEvery } from './api.js';
import { Facts, Silent } from './parts.js';
import { Plot } from './plot.js';
import { behind, bytes, date, lsn, rate, short, time, whole } from './words.js';

const RANGES = [[600, '10 min'], [21600, '6 h'], [86400, '24 h']];

export function Overview({ name, detail }) {
  const [seconds, setSeconds] = useState(600);
  const [found, setFound] = useState(null);
  useEvery(async (isOver) => {
    try {
      const history = await ask(`api/${address(name)}/history?seconds=${seconds}`);
      if (!isOver()) setFound(history);
    } catch {
      // the head of the page says that the worker does not answer
    }
  }, [name, seconds], seconds === 600 ? 2000 : 15000);
  const plots = useMemo(() => (found ? plotsOf(found, detail.type, detail.source) : []), [found]);
  return html`<section aria-label="Overview">
    <${Silent} detail=${detail} />
    <${Facts} rows=${facts(detail)} />
    <div class="tools"><fieldset class="choice-row"><legend class="hidden">Time shown</legend>
      ${RANGES.map(([each, word]) => html`<label key=${each}><input type="radio" name="range" data-control="time-range" checked=${each === seconds}
        onChange=${() => setSeconds(each)} /> ${word}</label>`)}</fieldset>
      ${found && found.began * 1000 > Date.now() - seconds * 1000 && html`<span class="muted">The worker keeps this in memory, since its start at ${date(found.began)}.</span>`}
    </div>
    ${found && !plots.length && html`<p class="empty">Nothing has been measured yet.</p>`}
    <div class="plots">${plots.map((plot) => html`<${Plot} key=${plot.title} ...${plot} />`)}</div>
  </section>`;
}

function facts(detail) {
  const source = detail.source || {};
  const rows = [['Records', rate(detail.rate)], ['Behind', behind(detail.behind)]];
  for (const [kind, values] of Object.entries(source.facts || {})) {
    if (kind === 'postgres-slot') {
      if (values['confirmed-flush-lsn']) rows.push(['Confirmed position', lsn(Math.round(values['confirmed-flush-lsn']))]);
      rows.push(['Log that the server keeps', `${bytes(values['retained-bytes'])}${values['wal-status'] ? `, ${values['wal-status']}` : ''}`]);
      if (values['safe-wal-size-bytes'] > 0) rows.push(['Left until the slot is lost', bytes(values['safe-wal-size-bytes'])]);
      if (values['inactive-seconds'] > 0) rows.push(['Slot not read for', time(values['inactive-seconds'])]);
    } else {
      if (values['size-bytes'] !== undefined) rows.push(['Log that the server has', `${bytes(values['size-bytes'])} in ${whole(values.files || 0)} file${values.files === 1 ? '' : 's'}`]);
      if (values['last-timestamp-seconds'] !== undefined) rows.push(['Last entry of the server\'s log', date(values['last-timestamp-seconds'])]);
      if (values['window-seconds'] !== undefined) rows.push(['Log that the server has', time(values['window-seconds'])]);
      if (values['seconds-left'] !== undefined) rows.push(['Left until the position is gone', time(values['seconds-left'])]);
      if (values['gtid-distance'] !== undefined) rows.push(['Transactions not read', whole(values['gtid-distance'])]);
    }
  }
  if (source.facts_error) rows.push(['The source does not say', source.facts_error]);
  if (detail.sink['lag-offsets'] !== undefined) rows.push(['Records not in a table yet', whole(detail.sink['lag-offsets'])]);
  if (detail.topics) rows.push(['Topics', topics(detail.topics)]);
  const restarts = detail.task_list.reduce((sum, task) => sum + ((task.restarts && task.restarts.attempts) || 0), 0);
  if (restarts) rows.push(['Restarts after failures', whole(restarts)]);
  return rows;
}

function topics(names) {
  if (!names.length) return 'none yet';
  return names.length <= 6 ? names.join(', ') : html`<details><summary>${names.length} topics</summary>${names.join(', ')}</details>`;
}

/** The series of all tasks in one, by `how`: summed, or the largest. */
function merged(tasks, series, how) {
  const lines = tasks.map((task) => task.series[series]).filter(Boolean);
  if (!lines.length || lines.every((line) => line.every((value) => value === null))) return null;
  return lines[0].map((_, at) => {
    const known = lines.map((line) => line[at]).filter((value) => value !== null && value !== undefined);
    return known.length ? how(known) : null;
  });
}

/** 0.4 %, 12 % */
const percent = (value) => `${value >= 0.1 ? Math.round(value * 100) : Number((value * 100).toPrecision(2))} %`;

const sum = (values) => values.reduce((total, value) => total + value, 0);
const largest = (values) => Math.max(...values);

function plotsOf(found, kind, source) {
  const tasks = Object.values(found.tasks);
  if (!tasks.length) return [];
  const [{ start, step }] = tasks;
  const size = tasks[0].series.cpu.length;
  const times = Array.from({ length: size }, (_, at) => start + at * step);
  const line = (label, series, how = sum, right = false) => ({ label, values: merged(tasks, series, how), right });
  const seconds = (each) => each && { ...each, values: each.values && each.values.map((value) => (value === null ? null : value / 1000)) };
  const plot = (title, lines, format, formatRight) => {
    const shown = lines.filter((each) => each.values);
    return shown.length ? [{ title, times, lines: shown, format, formatRight: formatRight || format }] : [];
  };
  const isSink = kind === 'sink';
  const unit = source && source.unit === 'seconds' ? time : bytes;
  return [
    ...plot('Records a second', isSink
      ? [line('read', 'records_in'), line('written', 'records_out'), line('rejected', 'rejected')]
      : [line('read', 'records_in'), line('to Kafka', 'records_out'), line('snapshot rows', 'snapshot_rate')], short),
    ...plot(isSink ? 'Late' : 'Age of events when they were read', isSink
      ? [seconds(line('oldest record', 'lag_ms', largest))]
      : [seconds(line('last', 'age_ms', largest)), seconds(line('99 of 100 below', 'age_p99_ms', largest))], time),
    ...(isSink
      ? plot('Records not written yet', [line('records', 'lag_offsets')], short)
      : plot('Log', [line('not read yet', 'distance', largest), line('kept by the server', 'retained_bytes', largest)], unit)),
    ...plot('CPU and memory of the tasks', [line('CPU', 'cpu'), line('memory', 'rss_bytes', sum, true)],
      percent, bytes),
  ];
}
