/** Where a connector is: in words, as JSON, and on a stopped connector to be edited. */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { address, mayChange, rest, say } from './api.js';
import { Diff } from './diff.js';
import { useFocusInstead } from './focus.js';
import { moves } from './moves.js';
import { Confirm, Facts, Scrolled } from './parts.js';
import { behind, offsetWords } from './words.js';

const asText = (offsets) => JSON.stringify(offsets, null, 2);

export function Offsets({ name, detail }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState('');
  const [edited, setEdited] = useState(null);
  const [asked, setAsked] = useState('');
  const opener = useRef(null);
  const field = useRef(null);
  useFocusInstead(() => field.current || opener.current, [edited !== null]);
  const load = async () => {
    try {
      setFound((await rest(address(name, '/offsets'))).offsets);
      setProblem('');
    } catch (error) {
      setProblem(error.message);
    }
  };
  useEffect(() => {
    load();
  }, [name, detail.state]);
  const isStopped = detail.target === 'STOPPED';
  const parsed = edited === null ? null : parse(edited);
  const meant = parsed && parsed.offsets ? asText(parsed.offsets) : edited; // however its lines are broken
  const send = async (method, body) => {
    try {
      say((await rest(address(name, '/offsets'), { method, body })).message);
      setEdited(null);
      load();
    } catch (error) {
      say(error.message, true);
    }
  };
  return html`<section aria-label="Offsets">
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${found && !found.length && html`<p class="empty">No offset is stored: the connector begins at the beginning.</p>`}
    ${detail.source && detail.source.distance !== null && html`<p>${behind(detail.behind)} behind the end of the source's log.</p>`}
    ${found && found.map((entry, at) => html`<article key=${at} class="card">
      <h2>${Object.entries(entry.partition || {}).map(([key, value]) => `${key.replace('kafka_', '')} ${value}`).join(', ')}</h2>
      <${Facts} rows=${offsetWords(entry.offset)} />
      <details><summary>As JSON</summary><${Scrolled} label="Offset as JSON"><pre>${asText(entry)}</pre></${Scrolled}></details></article>`)}
    <div class="tools"><span class="buttons">
      <button type="button" data-control="read-offsets" onClick=${load}>Read again</button>
      ${mayChange() && found && html`<button type="button" ref=${opener} data-control="edit-offsets" disabled=${!isStopped || edited !== null} onClick=${() => setEdited(asText(found))}>Edit offsets</button>
        <button type="button" class="danger" data-control="reset-offsets" disabled=${!isStopped || !found.length} onClick=${() => setAsked('reset')}>Reset offsets</button>`}</span>
      ${mayChange() && !isStopped && html`<span class="muted">Stop the connector to change its offsets.</span>`}</div>
    ${edited !== null && html`<div class="card"><h2>Edit offsets</h2>
      <label class="field"><span>JSON, a list of partition and offset; <code>null</code> as offset removes one</span>
        <textarea rows="14" ref=${field} spellcheck="false" value=${edited} onInput=${(event) => setEdited(event.target.value)}></textarea></label>
      ${parsed.problem && html`<p class="problem" role="alert">${parsed.problem}</p>`}
      <${Diff} before=${asText(found)} after=${meant} />
      <${Moves} before=${found} after=${parsed.offsets} source=${detail.source} />
      <div class="buttons"><button type="button" class="primary" data-control="save-offsets" disabled=${!parsed.offsets || meant === asText(found)} onClick=${() => setAsked('alter')}>Save offsets</button>
        <button type="button" data-control="leave-offsets" onClick=${() => setEdited(null)}>Cancel</button></div></div>`}
    ${asked === 'reset' && html`<${Confirm} title="Reset the offsets of ${name}?" typed=${name} verb="Reset" onClose=${() => setAsked('')}
      text="All offsets are forgotten. At its next start the connector begins at the beginning: a database source takes a new snapshot, a sink reads its topics again."
      onYes=${() => send('DELETE')} />`}
    ${asked === 'alter' && html`<${Confirm} title="Save these offsets of ${name}?" typed=${name} verb="Save" onClose=${() => setAsked('')}
      onYes=${() => send('PATCH', { offsets: parsed.offsets })}><${Diff} before=${asText(found)} after=${meant} />
        <${Moves} before=${found} after=${parsed.offsets} source=${detail.source} /></${Confirm}>`}
  </section>`;
}

/** What the edited offsets skip or repeat. */
function Moves({ before, after, source }) {
  const found = after ? moves(before, after, source) : [];
  return html`<div class="note" role="status">An earlier position repeats records, a later one skips them for good.
    ${found.length > 0 && html`<ul>${found.map((each) => html`<li key=${each}>${each}</li>`)}</ul>`}</div>`;
}

function parse(text) {
  try {
    const offsets = JSON.parse(text);
    return Array.isArray(offsets) ? { offsets } : { problem: 'This is no list: it must begin with [ and end with ].' };
  } catch (error) {
    return { problem: `This is no JSON: ${error.message}` };
  }
}
