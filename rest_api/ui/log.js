/** The last lines that the tasks of a connector have logged. */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { address, ask, mayChange, say, useEvery } from './api.js';
import { Silent } from './parts.js';
import { clock, time } from './words.js';

const KEPT = 500;
const LEVELS = ['all', 'DEBUG', 'INFO', 'WARN', 'ERROR'];

/** For how long the button has DEBUG logged. */
const DEBUG_SECONDS = 600;
const RANK = { TRACE: 0, DEBUG: 1, INFO: 2, WARN: 3, ERROR: 4, FATAL: 5 };

/** The level of a line: the text form has it after the time, the JSON form in a field. */
function level(line) {
  const found = /^\[[^\]]+\] ([A-Z]+) /.exec(line) || /"level":"([A-Z]+)"/.exec(line);
  return found ? found[1] : null;
}

export function Log({ name, detail }) {
  const [lines, setLines] = useState(null);
  const [least, setLeast] = useState('all');
  const [search, setSearch] = useState('');
  const [follows, setFollows] = useState(true);
  const next = useRef('0');
  const place = useRef(null);
  useEvery(async (isOver) => {
    try {
      const answer = await ask(`api/${address(name)}/log?since=${encodeURIComponent(next.current)}`);
      if (isOver()) return;
      const found = answer.lines;
      next.current = answer.next;
      setLines((before) => (found.length || before === null ? [...(before || []), ...found].slice(-KEPT) : before));
    } catch {
      // the head of the page says that the worker does not answer
    }
  }, [name]);
  useEffect(() => {
    if (follows && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [lines, follows, least, search]);
  let current = 'INFO';
  const shown = (lines || []).map(([number, task, text]) => {
    current = level(text) || current; // the lines of a trace have the level of their first line
    return { number, task, text, level: current };
  }).filter((line) => (least === 'all' || RANK[line.level] >= RANK[least]) && (!search || line.text.toLowerCase().includes(search.toLowerCase())));
  return html`<section aria-label="Log">
    <${Silent} detail=${detail} />
    <div class="tools">
      <label class="search"><span class="hidden">Search the log</span><input type="search" data-control="search-log" placeholder="Search the log" value=${search}
        onInput=${(event) => setSearch(event.target.value)} /></label>
      <label>Level <select data-control="log-level" value=${least} onChange=${(event) => setLeast(event.target.value)}>
        ${LEVELS.map((each) => html`<option key=${each} value=${each}>${each === 'all' ? 'all' : `${each} and worse`}</option>`)}</select></label>
      <label><input type="checkbox" data-control="follow-log" checked=${follows} onChange=${(event) => setFollows(event.target.checked)} /> follow</label>
      <span class="muted">${shown.length} of the last ${KEPT} lines</span>
      <${Debug} name=${name} until=${detail.debug_until} /></div>
    ${lines && !lines.length && html`<p class="empty">The connector's tasks have not logged anything since their workers started.</p>`}
    <div class="log" ref=${place} tabindex="0" role="log" aria-label="Log of ${name}" aria-live="off">
      ${shown.map((line) => html`<div key=${`${line.number}/${line.task}`} class=${line.level}>${line.text}</div>`)}</div>
  </section>`;
}

/** Has the connector's tasks, and no others, log DEBUG for a while; the workers end it by themselves. */
function Debug({ name, until }) {
  const [asked, setAsked] = useState(null); // what the next answer of the worker will say
  const isOn = asked === null ? until !== null : asked;
  useEffect(() => setAsked(null), [until !== null]);
  const set = async (seconds) => {
    try {
      await ask(`api/${address(name, `/debug?seconds=${seconds}`)}`, { method: 'PUT' });
      say(seconds ? `The tasks of ${name} log DEBUG for ${time(seconds)}.` : `The tasks of ${name} log as before.`);
      setAsked(seconds > 0);
    } catch (error) {
      say(error.message, true);
    }
  };
  return html`<span class="buttons">
    ${isOn && until !== null && html`<span role="status">DEBUG until ${clock(until)}</span>`}
    ${mayChange() && (isOn ? html`<button type="button" class="small" data-control="end-debug" onClick=${() => set(0)}>End DEBUG</button>`
      : html`<button type="button" class="small" data-control="debug" onClick=${() => set(DEBUG_SECONDS)}>DEBUG for 10 min</button>`)}</span>`;
}
