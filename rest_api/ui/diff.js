/** What is different between two texts or two configurations. */
import { html } from './vendor/htm-preact.js';

/** Lines of both texts as [mark, line]; the longest common part stays. Texts have some hundred lines. */
export function lines(before, after) {
  const left = before.split('\n');
  const right = after.split('\n');
  const same = Array.from({ length: left.length + 1 }, () => new Array(right.length + 1).fill(0));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      same[i][j] = left[i] === right[j] ? same[i + 1][j + 1] + 1 : Math.max(same[i + 1][j], same[i][j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      found.push([' ', left[i]]);
      i += 1;
      j += 1;
    } else if (i < left.length && (j >= right.length || same[i + 1][j] >= same[i][j + 1])) {
      found.push(['-', left[i]]);
      i += 1;
    } else {
      found.push(['+', right[j]]);
      j += 1;
    }
  }
  return found;
}

/** A configuration as sorted lines. */
export const asText = (config) => Object.keys(config).sort().map((name) => `${name}=${config[name]}`).join('\n');

const WORDS = { '-': 'removed: ', '+': 'added: ', ' ': '' };

/** Only what changes, unless `all`. */
export function Diff({ before, after, all }) {
  const found = lines(before, after).filter(([mark]) => all || mark !== ' ');
  if (!found.some(([mark]) => mark !== ' ')) return html`<p class="empty">Nothing changes.</p>`;
  return html`<pre class="diff" tabindex="0" aria-label="Changes">${found.map(([mark, line], at) => html`<span key=${at}
    class=${mark === '-' ? 'gone' : mark === '+' ? 'new' : ''}><span class="hidden">${WORDS[mark]}</span>${mark} ${line}${'\n'}</span>`)}</pre>`;
}
