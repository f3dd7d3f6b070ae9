/** The tables of a source, to be ticked: what is ticked becomes the list of the configuration (docs/ui.md). */
import { html, useState } from './vendor/htm-preact.js';
import { Dialog } from './parts.js';
import { whole } from './words.js';

/** The most tables that are all drawn; of more one searches. */
const MOST_DRAWN = 500;

/** The properties by which a source names its tables; a connector with none of them has nothing to tick. */
export const LISTS = ['table.include.list', 'collection.include.list'];

/**
 * The entries of the list that captures exactly the tables in `chosen`. Entries that mean no table without a tick stay as they are
 * written, regular expressions among them: what is chosen and means more than one table goes on to do so.
 */
export function entriesFor({ entries, tables }, chosen) {
  const decided = tables.filter((table) => !table.fixed_by);
  const lost = new Set(decided.filter((table) => !chosen.has(table.name)).flatMap((table) => table.matched_by));
  const isMeant = (table) => table.matched_by.some((entry) => !lost.has(entry));
  return [...entries.filter((entry, at) => !lost.has(at)), ...decided.filter((table) => chosen.has(table.name) && !isMeant(table)).map((table) => table.entry)];
}

/** What changes in the configuration; nothing while the ticks are as they were. */
export function changesFor(found, chosen) {
  const decided = found.tables.filter((table) => !table.fixed_by);
  if (decided.every((table) => chosen.has(table.name) === table.captured)) return {};
  return { ...Object.fromEntries(found.replaces.map((name) => [name, null])), [found.property]: entriesFor(found, chosen).join(',') };
}

export function Tables({ found, onUse, onClose }) {
  const [chosen, setChosen] = useState(new Set(found.tables.filter((table) => table.captured).map((table) => table.name)));
  const [search, setSearch] = useState('');
  const wanted = search.toLowerCase();
  const shown = found.tables.filter((table) => table.name.toLowerCase().includes(wanted));
  const change = (names, isOn) => {
    const next = new Set(chosen);
    for (const name of names) if (isOn) next.add(name); else next.delete(name);
    setChosen(next);
  };
  const changes = changesFor(found, chosen);
  const written = changes[found.property];
  const all = (isOn) => change(shown.filter((table) => !table.fixed_by).map((table) => table.name), isOn);
  return html`<${Dialog} title="Tables to capture" onClose=${onClose}>
    <div class="tools"><label class="search"><span class="hidden">Search tables</span><input type="search" data-control="search-tables" placeholder="Search ${found.tables.length} tables"
        value=${search} onInput=${(event) => setSearch(event.target.value)} /></label>
      <button type="button" class="small" data-control="tick-tables" onClick=${() => all(true)}>Tick all shown</button>
      <button type="button" class="small" data-control="untick-tables" onClick=${() => all(false)}>Untick all shown</button></div>
    <p role="status">${whole(found.tables.filter((table) => chosen.has(table.name)).length)} of ${whole(found.tables.length)} tables are ticked.
      ${found.left_out > 0 && ` ${whole(found.left_out)} more are not shown.`}</p>
    <fieldset class="choice-list tall"><legend>Tables</legend>
      ${shown.slice(0, MOST_DRAWN).map((table) => html`<label key=${table.name}>
        <input type="checkbox" data-control="capture-table" checked=${chosen.has(table.name)} disabled=${Boolean(table.fixed_by)}
          onChange=${(event) => change([table.name], event.target.checked)} /> ${table.name}${table.rows !== null && html` <small>about ${whole(table.rows)} rows</small>`}
        ${table.fixed_by && html` <small>decided by <code>${table.fixed_by}</code></small>`}</label>`)}
      ${shown.length === 0 && html`<p class="empty">${found.tables.length ? 'No table has this in its name.' : 'The user of the connector sees no table.'}</p>`}
      ${shown.length > MOST_DRAWN && html`<p class="muted">${whole(shown.length - MOST_DRAWN)} more; search for them.</p>`}</fieldset>
    ${written !== undefined && html`<p class="written">${written ? html`<code>${found.property}=${written}</code>` : 'Tick at least one: an empty list captures every table.'}</p>`}
    ${written && !found.entries.length && html`<p class="note">Without a list, tables that are made later are captured too. With this list they are not.</p>`}
    <div class="buttons"><button type="button" class="primary" data-control="use-tables" disabled=${!written} onClick=${() => onUse(changes)}>Use this list</button>
      <button type="button" data-control="leave-tables" onClick=${onClose}>Cancel</button></div>
  </${Dialog}>`;
}
