/** What the buttons of a connector do. Each sends the request that a client of the REST API would send. */
import { html, useState } from './vendor/htm-preact.js';
import { address, follow, mayChange, rest, say } from './api.js';
import { Confirm } from './parts.js';

/** name: [word, what is said after it, method, address] */
const ACTIONS = {
  pause: ['Pause', 'is being paused', 'PUT', '/pause'],
  resume: ['Resume', 'resumes', 'PUT', '/resume'],
  stop: ['Stop', 'is being stopped', 'PUT', '/stop'],
  restart: ['Restart', 'is being restarted', 'POST', '/restart?includeTasks=true'],
  restart_failed: ['Restart failed', 'restarts what has failed', 'POST', '/restart?includeTasks=true&onlyFailed=true'],
  delete: ['Delete', 'is deleted', 'DELETE', ''],
};

const ASKS = {
  stop: 'Its tasks end and free what they hold. A database keeps its log for the connector until it runs again or is deleted.',
  delete: 'Configurations are removed. Offsets, topics and what was made in databases stay.',
};

/** Does something to each of these connectors, one after the other. */
export async function act(names, action) {
  const [word, after, method, path] = ACTIONS[action];
  const failed = [];
  for (const name of names) {
    try {
      await rest(address(name, path), { method });
    } catch (error) {
      failed.push(`${name}: ${error.message}`);
    }
  }
  if (failed.length) say(`${word} failed. ${failed.join(' · ')}`, true);
  else say(names.length === 1 ? `${names[0]} ${after}.` : `${word}: ${names.length} connectors.`);
  follow();
  return failed.length === 0;
}

/** What makes sense for a connector as it is. */
export function offered(entry) {
  const found = [];
  const hasFailed = entry.verdict === 'failed';
  if (hasFailed) found.push('restart_failed');
  if (entry.target === 'STARTED') found.push('pause', 'stop');
  if (entry.target === 'STARTED' && !hasFailed) found.push('restart');
  if (entry.target === 'PAUSED') found.push('resume', 'stop');
  if (entry.target === 'STOPPED') found.push('resume');
  return found;
}

/** The buttons; those that need it ask first. `names` are one connector or several. */
export function Buttons({ names, actions, isSmall, onDone }) {
  const [asked, setAsked] = useState('');
  const [busy, setBusy] = useState('');
  if (!mayChange()) return null;
  const about = names.length === 1 ? names[0] : `${names.length} connectors`;
  const run = async (action) => {
    if (busy) return;
    setBusy(action);
    const isDone = await act(names, action);
    setBusy('');
    if (onDone) onDone(action, isDone);
  };
  return html`<span class="buttons">
    ${actions.map((action) => html`<button key=${action} type="button" data-control="${names.length > 1 ? 'several' : 'one'}-${action}" aria-disabled=${busy !== ''}
      class="${isSmall ? 'small' : ''} ${action === 'restart_failed' ? 'primary' : ''} ${action === 'delete' ? 'danger' : ''}"
      aria-label="${ACTIONS[action][0]} ${about}" onClick=${() => (ASKS[action] ? setAsked(action) : run(action))}>
      ${busy === action ? '…' : ACTIONS[action][0]}</button>`)}
    ${asked && html`<${Confirm} title="${ACTIONS[asked][0]} ${about}?" text=${ASKS[asked]} verb=${ACTIONS[asked][0]}
      typed=${asked === 'delete' ? about : ''} onClose=${() => setAsked('')} onYes=${() => run(asked)}>
      ${names.length > 1 && html`<p>${names.join(', ')}</p>`}</${Confirm}>`}
  </span>`;
}
