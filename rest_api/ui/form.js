/**
 * A configuration as fields and as JSON: two sides of one state, `config`, which holds every property that anybody has set, known or not.
 * The worker says which properties there are and what is wrong with them (api/validate); it is asked 300 ms after the last key, without a
 * login at the database. "Test connection" asks the doctor, who looks at the servers too, and "Choose tables" asks for the tables of a source.
 */
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact.js';
import { address, ask, follow, say } from './api.js';
import { asText, Diff } from './diff.js';
import { Field } from './field.js';
import { isLost } from './focus.js';
import { Dialog, Statement } from './parts.js';
import { LISTS, Tables } from './tables.js';

const SETTLE_MS = 300;

export function Form({ name, stored, onDone, isNew }) {
  const [config, setConfig] = useState(stored);
  const [text, setText] = useState(null);
  const [checked, setChecked] = useState(null);
  const [judged, setJudged] = useState(null);
  const [problem, setProblem] = useState('');
  const [found, setFound] = useState(null);
  const [busy, setBusy] = useState('');
  const [asks, setAsks] = useState(false);
  const [tables, setTables] = useState(null);
  const latest = useRef(0);
  const form = useRef(null);
  useLayoutEffect(() => { if (isLost()) form.current.focus(); }, []); // the button that has opened it is gone
  const title = isNew ? config.name || 'New connector' : name;
  const check = async () => {
    latest.current += 1;
    const turn = latest.current;
    try {
      const answer = await ask('api/validate', { method: 'PUT', body: config });
      if (turn === latest.current) {
        setChecked(answer);
        setJudged(config);
        setProblem('');
      }
    } catch (error) {
      if (turn === latest.current) setProblem(error.message);
    }
  };
  useEffect(() => {
    const timer = setTimeout(check, checked ? SETTLE_MS : 0);
    return () => clearTimeout(timer);
  }, [config]);
  const change = (values) => {
    setConfig(Object.fromEntries(Object.entries({ ...config, ...values }).filter(([, value]) => value !== null)));
    setText(null);
    setFound(null);
  };
  const setJson = (written) => {
    setText(written);
    try {
      const parsed = JSON.parse(written);
      if (parsed && typeof parsed === 'object' && !Array.isArray(parsed)) {
        const inner = parsed.config && typeof parsed.config === 'object' ? { ...parsed.config, ...(parsed.name ? { name: parsed.name } : {}) } : parsed;
        setConfig(Object.fromEntries(Object.entries(inner).map(([key, value]) => [key, value === null ? '' : String(value)])));
      }
    } catch {
      // it is being typed; the message below the field says so
    }
  };
  const look = async (what, take) => {
    if (busy) return;
    setBusy(what);
    try {
      take(await ask(`api/${what}`, { method: 'POST', body: config }));
      setProblem('');
    } catch (error) {
      setProblem(error.message);
    }
    setBusy('');
  };
  const save = async () => {
    setAsks(false);
    setBusy('save');
    try {
      const target = isNew ? config.name : name;
      await ask(`api/${address(target, `/config${isNew ? '?create=true' : ''}`)}`, { method: 'PUT', body: config });
      say(isNew ? `${target} is created.` : `The configuration of ${target} is saved.`);
      follow();
      onDone(true, target);
    } catch (error) {
      setProblem(error.message);
    }
    setBusy('');
  };
  const json = text === null ? JSON.stringify(config, null, 2) : text;
  const wrong = checked ? checked.infos.configs.filter(({ value }) => value.errors.length > 0).map(({ value }) => value.name) : [];
  const errors = checked ? checked.infos.error_count : 0;
  return html`<form class="config" ref=${form} tabindex="-1" aria-label=${title} onSubmit=${(event) => { event.preventDefault(); setAsks(true); }}>
    <div class="two">
      <div><${Fields} config=${config} stored=${stored} checked=${checked} set=${(key, value) => change({ [key]: value })} /></div>
      <div class="side">
        <label class="field"><span>The same as JSON</span>
          <textarea rows="24" spellcheck="false" value=${json} onInput=${(event) => setJson(event.target.value)}></textarea></label>
        ${text !== null && !isJson(text) && html`<p class="problem">This is no JSON yet; the fields show what was there before.</p>`}
      </div>
    </div>
    <div class="foot">
      ${!found && html`<p role="status">${judged !== config ? 'Checking …' : errors ? `${errors} problem${errors > 1 ? 's' : ''}:` : 'No problem found without a login.'}
        ${judged === config && wrong.map((key) => html` <button type="button" key=${key} class="small" data-control="go-to-problem" onClick=${() => document.getElementById(`p-${key}`)?.focus()}>${key}</button>`)}</p>`}
      ${checked && !found && checked.warnings.length > 0 && html`<ul class="warnings">${checked.warnings.map((warning) => html`<li key=${warning}>${warning}</li>`)}</ul>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${found && html`<${Findings} found=${found} />`}
      <div class="buttons">
        <button type="submit" class="primary" data-control="save" disabled=${busy !== '' || (isNew && !config.name) || (text !== null && !isJson(text))}>
          ${isNew ? 'Create' : 'Save'} …</button>
        <button type="button" data-control="test-connection" aria-disabled=${busy !== ''} onClick=${() => look('doctor', setFound)}>
          ${busy === 'doctor' ? 'Testing …' : 'Test connection'}</button>
        ${checked && checked.infos.configs.some(({ value }) => LISTS.includes(value.name)) && html`<button type="button" data-control="choose-tables" aria-disabled=${busy !== ''}
          onClick=${() => look('tables', setTables)}>${busy === 'tables' ? 'Listing …' : 'Choose tables …'}</button>`}
        <button type="button" data-control="leave-form" onClick=${() => onDone(false)}>Cancel</button>
      </div>
    </div>
    ${tables && html`<${Tables} found=${tables} onClose=${() => setTables(null)} onUse=${(changes) => {
      change(changes);
      setTables(null);
    }} />`}
    ${asks && html`<${Dialog} title=${isNew ? `Create ${config.name}?` : `Save ${name}?`} onClose=${() => setAsks(false)}>
      <${Diff} before=${isNew ? '' : asText(stored)} after=${asText(config)} />
      ${errors > 0 && html`<p class="problem">${errors} problem${errors > 1 ? 's are' : ' is'} left; the worker will refuse this.</p>`}
      <div class="buttons"><button type="button" class="primary" data-control="save-changes" onClick=${save}>${isNew ? 'Create' : 'Save'}</button>
        <button type="button" data-control="do-not-save" onClick=${() => setAsks(false)}>Cancel</button></div></${Dialog}>`}
  </form>`;
}

function isJson(text) {
  try {
    const parsed = JSON.parse(text);
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed);
  } catch {
    return false;
  }
}

/**
 * First the needed fields, the important ones and those that were set; all others folded by group. A field never moves while it is typed
 * into: it would lose the focus. A group with a value or a problem is open instead.
 */
function Fields({ config, stored, checked, set }) {
  const [search, setSearch] = useState('');
  if (!checked) return html`<p class="loading">Loading …</p>`;
  const entries = checked.infos.configs.filter((entry) => entry.value.visible !== false || config[entry.value.name] !== undefined);
  const known = new Set(entries.map((entry) => entry.value.name));
  const rest_of = Object.keys(config).filter((key) => !known.has(key)).map((key) => ({ definition: null, value: { name: key, errors: [], recommended_values: [] } }));
  const isFirst = ({ definition, value }) => !definition || stored[value.name] !== undefined || definition.required || definition.importance === 'HIGH';
  const all = [...entries, ...rest_of];
  const first = all.filter(isFirst).sort((a, b) => rank(a) - rank(b));
  const others = all.filter((entry) => !isFirst(entry));
  const wanted = search.toLowerCase();
  const groups = new Map();
  for (const entry of others) {
    const { name, documentation } = entry.definition;
    if (wanted && !`${name} ${documentation}`.toLowerCase().includes(wanted)) continue;
    const group = entry.definition.group || 'General';
    groups.set(group, [...(groups.get(group) || []), entry]);
  }
  const field = (entry) => html`<${Field} key=${entry.value.name} entry=${entry} text=${config[entry.value.name]}
    before=${stored[entry.value.name]} set=${(value) => set(entry.value.name, value)} />`;
  return html`<h2>Needed, important and set</h2>${first.map(field)}
    <h2>More properties</h2>
    <label class="search"><span class="hidden">Search properties</span><input type="search" data-control="search-properties" placeholder="Search ${others.length} more properties"
      value=${search} onInput=${(event) => setSearch(event.target.value)} /></label>
    ${[...groups].map(([group, members]) => html`<details key=${group}
      open=${wanted !== '' || members.some(({ value }) => value.errors.length > 0 || config[value.name] !== undefined)}><summary>${group} (${members.length})</summary>
      ${members.sort((a, b) => rank(a) - rank(b)).map(field)}</details>`)}`;
}

const IMPORTANCE = { HIGH: 0, MEDIUM: 1, LOW: 2 };
const rank = ({ definition }) => (definition ? (definition.required ? 0 : 1) + IMPORTANCE[definition.importance] : 5);

const WHO = { dba: 'The database administrator', 'kafka-admin': 'The administrator of Kafka', you: 'You' };

/** What the doctor says (docs/doctor.md): each fault with what it does, who mends it and by what; then what was looked at, and what not. */
function Findings({ found }) {
  const { looked_at: lookedAt, unseen } = found;
  const risks = found.findings.filter((each) => each.severity === 'risk');
  const findings = [...found.findings.filter((each) => each.severity !== 'risk'), ...risks];
  const problems = findings.length - risks.length;
  return html`<div class="diagnosis" role="alert">
    ${!findings.length && !unseen.length ? html`<p class="fine">Nothing is missing.</p>`
    : html`<p><b>${problems} problem${problems === 1 ? '' : 's'}, ${risks.length} risk${risks.length === 1 ? '' : 's'}.</b> Nothing was changed.</p>`}
    ${findings.length > 0 && html`<ul class="findings">${findings.map((each) => html`<li key=${`${each.check} ${each.what}`} class=${each.severity === 'risk' ? 'warn' : 'bad'}>
      <b>${each.severity === 'risk' ? 'Risk' : 'Problem'}:</b> ${each.what} <small>${each.why}</small>
      ${(each.statements.length > 0 || each.advice) && html`<small>${WHO[each.who]}${each.role && `, as ${each.role}`}:${each.advice && ` ${each.advice}`}</small>`}
      <${Statement} text=${each.statements.join('\n')} /></li>`)}</ul>`}
    ${unseen.map((text) => html`<p key=${text} class="problem">Not looked at: ${text}</p>`)}
    ${lookedAt.length > 0 && html`<p class="muted">Looked at: ${lookedAt.join('; ')}.</p>`}
  </div>`;
}
