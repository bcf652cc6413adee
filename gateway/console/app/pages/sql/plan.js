// The plan of a statement, as EXPLAIN tells it, beside the answer or below it.
import { html } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { Fault } from "../../parts/fault.js";
import { PlanLines } from "../../parts/plan_lines.js";
import { Elapsed } from "./elapsed.js";
import { titleOf } from "./places.js";

/** @param state what `explain` puts */
export function Plan({ state, close }) {
  useCommands([{ name: "Close the plan", run: close }]);
  return html`
    <section aria-label="Plan">
      <div class="row spread">
        <span class="row"><strong>Plan</strong><${Elapsed} state=${state} /></span>
        <button aria-label="Close the plan" title="Close the plan" onClick=${close}>×</button>
      </div>
      ${state.statement && html`<p class="soft"><code>${titleOf(state.statement)}</code></p>`}
      <${Fault} fault=${state.fault} />
      ${state.lines && html`<${PlanLines} lines=${state.lines} />`}
    </section>
  `;
}
