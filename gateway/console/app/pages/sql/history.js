// What was run before: the newest statements, kept by the browser.
import { html, signal } from "../../../vendor/preact.js";
import { keep, recall } from "../../core/keep.js";
import { openTab } from "./tabs.js";

const MOST = 200;
const MOST_CHARACTERS = 20_000;
const entries = signal([]);

export function loadHistory() {
  entries.value = recall("history", []);
}

/** Remember a run; the same text again takes the place of the one before. Secrets are not kept. */
export function remember(text, database, outcome) {
  if (text.length > MOST_CHARACTERS || /\b(pass|password|identified)\b/i.test(text)) return;
  const others = entries.value.filter((entry) => entry.text !== text || entry.database !== database);
  entries.value = [{ text, database, outcome, at: Date.now() }, ...others].slice(0, MOST);
  keep("history", entries.value);
}

export function History() {
  return html`
    <details class="side-part">
      <summary>History</summary>
      ${entries.value.length === 0 && html`<p>Nothing was run yet.</p>`}
      <ul class="plain">
        ${entries.value.map(
          (entry) => html`
            <li key=${entry.at}>
              <button class="entry" title=${entry.text} onClick=${() => openTab(entry.text, entry.database)}>
                <code>${entry.text.slice(0, 80)}</code>
                <span>${new Date(entry.at).toLocaleString()} · ${entry.outcome}</span>
              </button>
            </li>
          `,
        )}
      </ul>
    </details>
  `;
}
