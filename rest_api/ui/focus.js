/**
 * Keeps the focus: what is pressed is often gone a moment later (Pause becomes Resume), or its row moves, and somebody who uses keys alone
 * would begin at the top of the page again. The focus then goes to what is in the same place.
 */
import { useLayoutEffect, useRef } from './vendor/htm-preact.js';

const STOPS = 'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]';

/** What had the focus last, and each element around it with the number of the stop in it; null where nobody wants the focus kept. */
let held = null;
let around = [];

const stops = (element) => [...element.querySelectorAll(STOPS)];

/** Whether nothing that can be used has the focus. */
export const isLost = () => document.activeElement === null || document.activeElement === document.body || document.activeElement.disabled === true;

function note({ target }) {
  held = target;
  around = [];
  for (let each = target.parentElement; each && each !== document.body; each = each.parentElement) around.push([each, stops(each).indexOf(target)]);
}

function keep() {
  if (held === null || !isLost()) return;
  if (held.isConnected && !held.disabled) {
    held.focus();
    return;
  }
  const [place, number] = around.find(([each]) => each.isConnected && stops(each).length > 0) || [];
  if (!place) return;
  const every = stops(place);
  const harmless = every.filter((each) => !each.matches('.danger')); // one key too many must not ask for a deletion
  const found = harmless.length ? harmless : every;
  found[Math.max(0, Math.min(number, found.length - 1))].focus();
}

export function keepFocus() {
  addEventListener('focusin', note);
  addEventListener('pointerdown', () => { held = null; }); // a press next to everything takes the focus away, as it should
  new MutationObserver(keep).observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] });
}

/** Gives the focus to what `find` returns when `keys` have changed, where what had it is gone. */
export function useFocusInstead(find, keys) {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    if (!isFirst.current && isLost()) find()?.focus();
    isFirst.current = false;
  }, keys);
}
