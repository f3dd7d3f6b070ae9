/** One property: what it is, its value, and what is wrong with it. */
import { html } from './vendor/htm-preact.js';

/** A property as a field of the kind that its type and its recommended values ask for. */
export function Field({ entry, text, before, set }) {
  const { definition, value } = entry;
  const key = value.name;
  const id = `p-${key}`;
  const isWrong = value.errors.length > 0;
  const described = [definition && definition.documentation ? `${id}-doc` : '', isWrong ? `${id}-error` : ''].filter(Boolean).join(' ');
  const common = { id, 'aria-describedby': described || null, 'aria-invalid': isWrong ? 'true' : null, 'aria-required': definition && definition.required ? 'true' : null };
  const isChanged = text !== before;
  return html`<div class="field ${isWrong ? 'wrong' : ''}">
    <label for=${id}><code>${key}</code>${definition && definition.required ? html` <em>needed</em>` : ''}${isChanged ? html` <em>changed</em>` : ''}
      ${!definition ? html` <em>not known</em>` : ''}</label>
    <span class="value"><${Input} common=${common} definition=${definition} value=${value} text=${text} set=${set} />
      ${text !== undefined && !(definition && definition.required) && html`<button type="button" class="small" data-control="remove-property" aria-label="Remove ${key}"
        onClick=${() => set(null)}>Remove</button>`}</span>
    ${value.errors.map((error, at) => html`<p key=${at} class="problem" id=${at === 0 ? `${id}-error` : null}>${error}</p>`)}
    ${definition && definition.documentation && html`<p class="doc" id="${id}-doc">${definition.documentation}</p>`}
  </div>`;
}

function Input({ common, definition, value, text, set }) {
  const type = definition ? definition.type : 'STRING';
  const usual = definition && definition.default_value !== null && definition.default_value !== undefined ? String(definition.default_value) : '';
  const onInput = (event) => set(event.target.value);
  const choices = type === 'BOOLEAN' ? ['true', 'false'] : (value.recommended_values || []).map(String);
  if (type !== 'LIST' && choices.length > 0 && choices.length <= 60 && (text === undefined || text === '' || choices.includes(text))) {
    return html`<select ...${common} data-control="choose-value" value=${text ?? ''} onChange=${(event) => set(event.target.value === '' ? null : event.target.value)}>
      <option value="">${usual ? `default: ${usual}` : 'not set'}</option>
      ${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}</select>`;
  }
  if (type === 'PASSWORD') {
    return html`<input type="password" autocomplete="new-password" ...${common} value=${text ?? ''} onInput=${onInput} />`;
  }
  const isLong = (text || '').length > 80 || (text || '').includes('\n');
  if (isLong) return html`<textarea rows="3" spellcheck="false" ...${common} value=${text} onInput=${onInput}></textarea>`;
  return html`<input type="text" inputmode=${['INT', 'LONG', 'SHORT', 'DOUBLE'].includes(type) ? 'decimal' : null} spellcheck="false"
    autocomplete="off" placeholder=${usual ? `default: ${usual}` : ''} ...${common} value=${text ?? ''} onInput=${onInput} />`;
}
