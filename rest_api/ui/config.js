/** A connector's configuration: by group, as JSON, and to be edited. */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { address, ask, mayChange, rest } from './api.js';
import { useFocusInstead } from './focus.js';
import { Form } from './form.js';
import { Scrolled } from './parts.js';

/** The plugin's definitions by name; empty when the plugin is not installed here. */
export async function definitionsOf(className) {
  try {
    const found = await rest(`connector-plugins/${encodeURIComponent(className)}/config`);
    return new Map(found.map((key) => [key.name, key]));
  } catch {
    return new Map();
  }
}

export function Config({ name }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState('');
  const [edits, setEdits] = useState(false);
  const button = useRef(null);
  useFocusInstead(() => button.current, [edits]);
  const load = async () => {
    try {
      const config = await ask(`api/${address(name, '/config')}`);
      setFound({ config, definitions: await definitionsOf(config['connector.class']) });
    } catch (error) {
      setProblem(error.message);
    }
  };
  useEffect(() => {
    load();
  }, [name]);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  if (!found) return html`<p class="loading">Loading …</p>`;
  if (edits) {
    return html`<${Form} name=${name} stored=${found.config} onDone=${(saved) => {
      setEdits(false);
      if (saved) load();
    }} />`;
  }
  return html`<section aria-label="Configuration">
    ${mayChange() && html`<div class="tools"><button type="button" class="primary" ref=${button} data-control="edit-configuration" onClick=${() => setEdits(true)}>Edit configuration</button>
      <span class="muted">Secrets are shown as <code>[hidden]</code>; left so, they keep their values.</span></div>`}
    <div class="two">
      <div>${grouped(found).map(([group, rows]) => html`<section key=${group} aria-label=${group}><h2>${group}</h2>
        <dl class="properties">${rows.map(([key, value, definition]) => html`<div key=${key}><dt><code>${key}</code></dt>
          <dd>${value === '' ? html`<i>empty</i>` : value}${definition && defaultOf(definition) === value && html` <small>the default</small>`}</dd></div>`)}</dl></section>`)}</div>
      <div><h2>As JSON</h2><${Scrolled} label="Configuration as JSON"><pre>${JSON.stringify(found.config, null, 2)}</pre></${Scrolled}></div>
    </div>
  </section>`;
}

/** A default as the text that a configuration would have. */
const defaultOf = (definition) => (definition.default_value === null || definition.default_value === undefined ? null : String(definition.default_value));

/** [group, [[name, value, definition]]]: within a group, values that are not the default first. */
function grouped({ config, definitions }) {
  const groups = new Map();
  for (const [key, value] of Object.entries(config)) {
    const definition = definitions.get(key);
    const group = definition ? definition.group || 'General' : 'Other properties';
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push([key, value, definition]);
  }
  const isDefault = ([, value, definition]) => (definition && defaultOf(definition) === value ? 1 : 0);
  for (const rows of groups.values()) rows.sort((a, b) => isDefault(a) - isDefault(b) || a[0].localeCompare(b[0]));
  return [...groups.entries()];
}
