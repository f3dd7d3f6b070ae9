/** Small pieces that several views draw. */
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { say, useStore } from './api.js';
import { time, tone, whole } from './words.js';

/** A state in colour and word; colour alone says nothing. */
export const Pill = ({ verdict }) => html`<span class="pill ${tone(verdict)}">${verdict}</span>`;

/** How far a snapshot is. One that has read more rows than were estimated is not at its end: there is no share then. */
export function Bar({ rows, estimate, label, isDone }) {
  const known = isDone || estimate > rows;
  const share = isDone ? 1 : known ? rows / estimate : null;
  return html`<span class="bar">
    <progress aria-label=${label} max="1" ...${known ? { value: share } : {}}></progress>
    <span>${known ? `${Math.floor(share * 100)} %` : `${whole(rows)} rows`}</span>
  </span>`;
}

/** A line without axes; `values` are oldest first. */
export function Spark({ values, label }) {
  if (!values || values.length < 2) return null;
  const top = Math.max(...values, 1e-9);
  const points = values.map((value, at) => `${((at * 80) / (values.length - 1)).toFixed(1)},${(18 - (16 * value) / top).toFixed(1)}`).join(' ');
  return html`<svg class="spark" viewBox="0 0 80 20" role="img" aria-label=${label}><polyline points=${points} /></svg>`;
}

/** A statement to run elsewhere, with a button that copies it. */
export function Statement({ text }) {
  if (!text) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied.');
    } catch {
      say('The browser does not let this page copy; select the text.', true);
    }
  };
  return html`<div class="statement">
    <code tabindex="0">${text}</code>
    <button type="button" class="small" data-control="copy" onClick=${copy}>Copy</button>
  </div>`;
}

/** A dialog: Escape and a press of Cancel close it; the browser keeps the focus inside. */
export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    const shown = element.current;
    const before = document.activeElement;
    if (!shown.open) shown.showModal();
    return () => {
      shown.close(); // while it is open, nothing else takes the focus
      if (before && before.focus) before.focus();
    };
  }, []);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}

/** Asks before something that cannot be taken back; `typed` is a name to be typed. */
export function Confirm({ title, text, verb, typed, onYes, onClose, children }) {
  const [given, setGiven] = useState('');
  const isReady = !typed || given === typed;
  const done = (event) => {
    event.preventDefault();
    if (isReady) {
      onClose();
      onYes();
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${done}>
      ${text && html`<p>${text}</p>`}
      ${children}
      ${typed && html`<label class="field"><span>Type <code>${typed}</code> to confirm</span>
        <input type="text" autocomplete="off" value=${given} onInput=${(event) => setGiven(event.target.value)} /></label>`}
      <div class="buttons">
        <button type="submit" class="danger" data-control="confirm" disabled=${!isReady}>${verb}</button>
        <button type="button" data-control="do-not-confirm" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  </${Dialog}>`;
}

/** What was done, or why not; read aloud by screen readers. */
export function Toasts() {
  const { toasts } = useStore();
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.map((toast) => html`<p key=${toast.key} class=${toast.isProblem ? 'toast bad' : 'toast'}>${toast.text}</p>`)}
  </div>`;
}

/** Names and values. */
export const Facts = ({ rows }) => html`<dl class="facts">
  ${rows.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** A table that scrolls by itself on a narrow screen, and can be scrolled by keys. */
export const Scrolled = ({ label, children }) => html`<div class="scrolled" role="region" aria-label=${label} tabindex="0">${children}</div>`;

/** How long a snapshot still takes. */
export function snapshotWords(snapshot) {
  if (!snapshot) return '';
  if (snapshot.state === 'COMPLETED') return `completed, ${whole(snapshot.rows)} rows`;
  const left = snapshot.seconds_left === undefined ? '' : `, about ${time(snapshot.seconds_left)} left`;
  return `${snapshot.state === 'PAUSED' ? 'paused, ' : ''}${whole(snapshot.rows)} rows${left}`;
}

/** Says which workers did not tell what their tasks do, and leads to their own pages. */
export function Silent({ detail }) {
  const { worker } = useStore();
  if (!worker || !detail.silent.length) return null;
  const path = `#/connector/${encodeURIComponent(detail.name)}`;
  return html`<p class="note">No answer from ${detail.silent.map((each, at) => html`${at ? ', ' : ''}<a href="${worker.scheme}://${each}/ui/${path}">${each}</a>`)}:
    figures, plots and log lines of the tasks that run there are missing.</p>`;
}
