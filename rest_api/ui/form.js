/**
 * A configuration as fields and as JSON: two sides of one state, `config`, which holds every property that anybody has set, known or not.
 * The worker says which properties there are and what is wrong with them (api/validate); it is asked 300 ms after the last key, without a
 * login at the database. "Test connection" asks the doctor where the worker has one, and else checks with a login.
 */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { address, ask, follow, rest, say } from './api.js';
import { asText, Diff } from './diff.js';
import { Field } from './field.js';
import { Dialog, Statement } from './parts.js';

const SETTLE_MS = 300;
const HIDDEN = '[hidden]';

export function Form({ name, stored, onDone, isNew }) {
  const [config, setConfig] = useState(stored);
  const [text, setText] = useState(null);
  const [checked, setChecked] = useState(null);
  const [problem, setProblem] = useState('');
  const [found, setFound] = useState(null);
  const [busy, setBusy] = useState('');
  const [asks, setAsks] = useState(false);
  const latest = useRef(0);
  const title = isNew ? config.name || 'New connector' : name;
  const check = async (connects) => {
    latest.current += 1;
    const turn = latest.current;
    try {
      const answer = await ask(`api/validate?connect=${connects}`, { method: 'PUT', body: config });
      if (turn === latest.current) {
        setChecked(answer);
        setProblem('');
      }
      return answer;
    } catch (error) {
      if (turn === latest.current) setProblem(error.message);
      return null;
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => check(false), checked ? SETTLE_MS : 0);
    return () => clearTimeout(timer);
  }, [config]);
  const set = (key, value) => {
    const next = { ...config };
    if (value === null) delete next[key]; else next[key] = value;
    setConfig(next);
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
  const test = async () => {
    setBusy('test');
    setFound(await examine(config, () => check(true)));
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
  const errors = checked ? checked.infos.error_count : 0;
  return html`<form class="config" aria-label=${title} onSubmit=${(event) => { event.preventDefault(); setAsks(true); }}>
    <div class="two">
      <div><${Fields} config=${config} stored=${stored} checked=${checked} set=${set} /></div>
      <div class="side">
        <label class="field"><span>The same as JSON</span>
          <textarea rows="24" spellcheck="false" value=${json} onInput=${(event) => setJson(event.target.value)}></textarea></label>
        ${text !== null && !isJson(text) && html`<p class="problem">This is no JSON yet; the fields show what was there before.</p>`}
      </div>
    </div>
    <div class="foot">
      <p role="status">${checked ? (errors ? `${errors} problem${errors > 1 ? 's' : ''}` : 'No problem found without a login.') : 'Checking …'}</p>
      ${checked && checked.warnings.length > 0 && html`<ul class="warnings">${checked.warnings.map((warning) => html`<li key=${warning}>${warning}</li>`)}</ul>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${found && html`<${Findings} found=${found} />`}
      <div class="buttons">
        <button type="submit" class="primary" disabled=${busy !== '' || (isNew && !config.name) || (text !== null && !isJson(text))}>
          ${isNew ? 'Create' : 'Save'} …</button>
        <button type="button" disabled=${busy !== ''} onClick=${test}>${busy === 'test' ? 'Testing …' : 'Test connection'}</button>
        <button type="button" onClick=${() => onDone(false)}>Cancel</button>
      </div>
    </div>
    ${asks && html`<${Dialog} title=${isNew ? `Create ${config.name}?` : `Save ${name}?`} onClose=${() => setAsks(false)}>
      <${Diff} before=${isNew ? '' : asText(stored)} after=${asText(config)} />
      ${errors > 0 && html`<p class="problem">${errors} problem${errors > 1 ? 's are' : ' is'} left; the worker will refuse this.</p>`}
      <div class="buttons"><button type="button" class="primary" onClick=${save}>${isNew ? 'Create' : 'Save'}</button>
        <button type="button" onClick=${() => setAsks(false)}>Cancel</button></div></${Dialog}>`}
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

/** Needed fields and those that are set first; all others folded by group. */
function Fields({ config, stored, checked, set }) {
  const [search, setSearch] = useState('');
  if (!checked) return html`<p class="loading">Loading …</p>`;
  const entries = checked.infos.configs.filter((entry) => entry.value.visible !== false || config[entry.value.name] !== undefined);
  const known = new Set(entries.map((entry) => entry.value.name));
  const rest_of = Object.keys(config).filter((key) => !known.has(key)).map((key) => ({ definition: null, value: { name: key, errors: [], recommended_values: [] } }));
  const isFirst = ({ definition, value }) => config[value.name] !== undefined || value.errors.length > 0 || (definition && definition.required);
  const all = [...entries, ...rest_of];
  const first = all.filter(isFirst).sort((a, b) => rank(a) - rank(b));
  const others = all.filter((entry) => !isFirst(entry) && entry.definition);
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
  return html`<h2>Set, and needed</h2>${first.map(field)}
    <h2>More properties</h2>
    <label class="search"><span class="hidden">Search properties</span><input type="search" placeholder="Search ${others.length} more properties"
      value=${search} onInput=${(event) => setSearch(event.target.value)} /></label>
    ${[...groups].map(([group, members]) => html`<details key=${group} open=${wanted !== ''}><summary>${group} (${members.length})</summary>
      ${members.sort((a, b) => rank(a) - rank(b)).map(field)}</details>`)}`;
}

const IMPORTANCE = { HIGH: 0, MEDIUM: 1, LOW: 2 };
const rank = ({ definition, value }) => (value.errors.length ? 0 : 10) + (definition ? (definition.required ? 0 : 1) + IMPORTANCE[definition.importance] : 5);

/** Asks the doctor; a worker without one, and a secret that only the worker knows, are checked by a validation that logs in. */
async function examine(config, validate) {
  if (!Object.values(config).includes(HIDDEN)) {
    try {
      return await rest(`connector-plugins/${encodeURIComponent(config['connector.class'] || '')}/doctor`, { method: 'POST', body: config });
    } catch (error) {
      if (![404, 405].includes(error.status)) return { problem: error.message };
    }
  }
  const answer = await validate();
  return answer ? { errors: answer.infos.configs.flatMap((entry) => entry.value.errors) } : null;
}

function Findings({ found }) {
  if (found.problem) return html`<p class="problem" role="alert">${found.problem}</p>`;
  const list = found.findings || (found.errors || []).map((what) => ({ what }));
  if (!list.length) return html`<p class="fine" role="status">The connection works, and nothing is missing.</p>`;
  return html`<ul class="findings" role="alert">${list.map((each, at) => html`<li key=${at}>${each.what || each.title || each.message || ''}
    ${each.why && html` <small>${each.why}</small>`}<${Statement} text=${each.statement || each.remedy || each.sql || ''} />
    ${each.who && html`<small>${each.who}</small>`}</li>`)}</ul>`;
}
