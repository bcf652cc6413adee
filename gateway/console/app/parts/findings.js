// What `penstock doctor` says, worst first.
import { html } from "../../vendor/preact.js";
import { State } from "./state.js";

const ORDER = ["bad", "look", "ok"];

export function Findings({ findings }) {
  if (findings.length === 0) return html`<p><${State} word="ok" /> Nothing to do.</p>`;
  const sorted = findings.slice().sort((a, b) => ORDER.indexOf(a.grade) - ORDER.indexOf(b.grade));
  return html`
    <ul>
      ${sorted.map(
        (finding) => html`
          <li key=${finding.what}>
            <${State} word=${finding.grade} /> ${finding.what}${finding.do && html`<br /><span class="soft">${finding.do}</span>`}
          </li>
        `,
      )}
    </ul>
  `;
}
