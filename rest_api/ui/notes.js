/** Notifications: what a connector's tasks have told of themselves. */
import { html, useState } from './vendor/htm-preact.js';
import { address, rest, useEvery } from './api.js';
import { date } from './words.js';

/** The last notifications of a connector, the oldest first; asked for again at once when `turn` changes. */
export function useNotes(name, turn) {
  const [notes, setNotes] = useState([]);
  useEvery(async (isOver) => {
    try {
      const found = await rest(address(name, '/notifications?limit=100'));
      if (!isOver()) setNotes(found.notifications || []);
    } catch {
      // a connector whose tasks are being moved has none for a moment
    }
  }, [name, turn], 4000);
  return notes;
}

/** The newest first; `empty` is said when there are none. */
export const Timeline = ({ notes, empty }) => html`<h2>What happened</h2>
  ${notes.length ? html`<ol class="timeline">${[...notes].reverse().map((each) => html`<li key=${each.sequence}>
    <time>${date((each.timestamp || 0) / 1000)}</time> <b>${each.aggregate_type}</b> ${each.type}
    <small>${Object.entries(each.additional_data || {}).map(([key, value]) => `${key}: ${value}`).join(' · ')}</small></li>`)}</ol>`
  : html`<p class="empty">${empty}</p>`}`;
