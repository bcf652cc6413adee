// One entry of a log: level, time, service, what it says, its fields, and a traceback that is folded.
import { html } from "../../../vendor/preact.js";
import { cell } from "../../core/format.js";
import { State } from "../../parts/state.js";
import { TraceLink } from "../../parts/trace_link.js";

export function keyOf({ time, service, node, text }) {
  return [time, service, node, text].join(" ");
}

export function LogEntry({ entry: { time, level, service, node, text, fields, exception } }) {
  return html`
    <li>
      <p class="from">
        <${State} word=${level} />
        <time datetime=${time}>${time.replace("T", " ").slice(0, 23)}</time>
        <span><strong>${service}</strong> <span class="soft">node ${node}</span></span>
      </p>
      <p>${text}</p>
      <${Fields} fields=${Object.entries(fields)} />
      ${exception && html`
        <details>
          <summary>Exception</summary>
          <pre class="text" tabindex="0">${exception}</pre>
        </details>
      `}
    </li>
  `;
}

function Fields({ fields }) {
  if (fields.length === 0) return null;
  return html`
    <dl>
      ${fields.map(
        ([name, value]) => html`
          <div key=${name}><dt>${name}</dt><dd>${name === "trace" ? html`<${TraceLink} trace=${String(value)} />` : cell(value)}</dd></div>
        `,
      )}
    </dl>
  `;
}
