/** The page: which view the address asks for, the head, and what is said at the foot. */
import { html, render, useEffect, useState } from './vendor/htm-preact.js';
import { follow, useStore } from './api.js';
import { Connector } from './connector.js';
import { Create } from './create.js';
import { keepFocus, useFocusInstead } from './focus.js';
import { List } from './list.js';
import { Toasts } from './parts.js';
import { Worker } from './worker.js';

/** `#/connector/NAME/VIEW?q=…` as {parts, query}. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  return { parts: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query || '') };
}

const go = (hash) => {
  location.hash = hash;
};

function Page() {
  const { problem, worker, mode } = useStore();
  const [{ parts, query }, setPlace] = useState(place());
  useEffect(() => {
    const note = () => {
      setPlace(place());
      if (!document.querySelector('dialog[open]')) window.scrollTo(0, 0);
    };
    addEventListener('hashchange', note);
    follow();
    return () => removeEventListener('hashchange', note);
  }, []);
  const [view, name, tab] = parts;
  const setQuery = (asked) => {
    history.replaceState(null, '', `#/${asked}`);
    setPlace(place());
  };
  useEffect(() => {
    document.title = [name, view === 'worker' ? 'Worker' : view === 'new' ? 'New connector' : 'Connectors', worker && worker.group].filter(Boolean).join(' · ');
  }, [view, name, worker]);
  useFocusInstead(mainToFocus, [view, name]);
  const link = (hash, word, isCurrent) => html`<a href=${hash} aria-current=${isCurrent ? 'page' : null}>${word}</a>`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); mainToFocus().focus(); }}>Skip to the content</a>
    <header><span class="brand">connect-py</span>
      <nav aria-label="Page">${link('#/', 'Connectors', view !== 'worker')}${link('#/worker', 'Worker', view === 'worker')}</nav>
      <span class="where">${worker ? (worker.group ? `group ${worker.group}` : 'standalone') : ''}${mode === 'read-only' ? ' · read only' : ''}</span></header>
    ${problem && html`<p class="banner" role="alert">${problem} What is shown is the last that was known.</p>`}
    ${view === 'connector' ? html`<${Connector} key=${name} name=${name} view=${tab} go=${go} />`
    : view === 'worker' ? html`<${Worker} />`
    : view === 'new' ? html`<${Create} go=${go} />`
    : html`<${List} query=${query} setQuery=${setQuery} />`}
    <${Toasts} />`;
}

function mainToFocus() {
  const main = document.getElementById('main');
  main.tabIndex = -1;
  return main;
}

const target = document.getElementById('page');
target.textContent = '';
keepFocus();
render(html`<${Page} />`, target);
