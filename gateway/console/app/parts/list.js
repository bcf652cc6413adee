// A short table of objects; on a narrow screen each row is a card.
import { html } from "../../vendor/preact.js";

/** @param columns `{title, show(row), number?}`; @param keyOf names a row */
export function List({ columns, rows, keyOf, label, empty }) {
  if (rows.length === 0) return html`<p>${empty}</p>`;
  return html`
    <div class="wide">
      <table class="list cards-when-narrow" aria-label=${label}>
        <thead>
          <tr>${columns.map(({ title, number }) => html`<th key=${title} scope="col" class=${number && "number"}>${title}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) => html`
              <tr key=${keyOf(row)}>
                ${columns.map(
                  ({ title, show, number }) => html`
                    <td key=${title} data-label=${title} class=${number && "number"}><div>${show(row)}</div></td>
                  `,
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}
