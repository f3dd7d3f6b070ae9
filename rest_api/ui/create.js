/** A new connector: which kind, then its form. */
import { html, useEffect, useState } from './vendor/htm-preact.js';
import { mayChange, rest } from './api.js';
import { Form } from './form.js';
import { shortClass } from './words.js';

const KINDS = [['source', 'Read changes from'], ['sink', 'Write to']];

export function Create({ go }) {
  const [plugins, setPlugins] = useState(null);
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState(null);
  useEffect(() => {
    rest('connector-plugins').then(setPlugins, (error) => setProblem(error.message));
  }, []);
  const done = (saved, name) => {
    if (saved) go(`#/connector/${encodeURIComponent(name)}`); else setChosen(null);
  };
  if (!mayChange()) return html`<main id="main"><h1>New connector</h1><p class="note">This page only shows things: the worker's property <code>rest.ui</code> is read-only.</p></main>`;
  return html`<main id="main">
    <nav class="crumbs" aria-label="Path"><span aria-hidden="true">← </span><a href="#/">Connectors</a></nav>
    <h1>${chosen ? `New ${shortClass(chosen.class)} ${chosen.type}` : 'New connector'}</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!chosen && plugins && KINDS.map(([type, title]) => html`<h2 key=${type}>${title}</h2>
      <ul class="plugins">${plugins.filter((plugin) => plugin.type === type).map((plugin) => html`<li key=${plugin.class}>
        <button type="button" data-control="choose-plugin" onClick=${() => setChosen(plugin)}><b>${shortClass(plugin.class)}</b> ${type}<small>${plugin.class}</small></button></li>`)}</ul>`)}
    ${chosen && html`<${Form} isNew=${true} stored=${{ name: '', 'connector.class': chosen.class, 'tasks.max': '1' }} onDone=${done} />`}
  </main>`;
}
