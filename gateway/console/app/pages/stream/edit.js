// A stream's statement in an editor: what it would do, and its way into the stream's place.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { announce } from "../../core/live.js";
import { query } from "../../core/query.js";
import { ConfirmDialog } from "../../parts/dialog.js";
import { Fault } from "../../parts/fault.js";
import { PlanLines } from "../../parts/plan_lines.js";
import { useDialect } from "../sql/dialect.js";
import { makeEditor } from "../sql/editor.js";
import { Elapsed } from "../sql/elapsed.js";
import { explain } from "../sql/explaining.js";
import { anewOf, replacingOf } from "./anew.js";
import { becomes, hindrance, wantsHistory } from "./replacement.js";

/** @param close ends the edit; *replaced* is called after the edited statement was carried out */
export function StatementEditor({ stream, close, replaced }) {
  const { dialect, fault } = useDialect();
  return html`
    <${Fault} fault=${fault.value} />
    ${dialect.value
      ? html`<${Desk} dialect=${dialect.value} stream=${stream} close=${close} replaced=${replaced} />`
      : html`<p>Loading …</p><p><button onClick=${close}>Discard</button></p>`}
  `;
}

function Desk({ dialect, stream, close, replaced }) {
  const { database, name } = stream;
  const began = useRef(stream.sql);
  const text = useSignal(replacingOf(stream.sql));
  const checked = useSignal(null);
  const asking = useSignal(false);
  const host = useRef(null);
  const editor = useRef(null);

  function check() {
    checked.value?.stop?.();
    explain(text.value, { database, unit: 0 }, (state) => (checked.value = state));
  }
  function fillHistory() {
    editor.current.replace(anewOf(text.value));
    check();
  }
  async function replace() {
    await query(text.value, { database });
    announce(`${name}: replaced`);
    replaced();
    close();
  }
  useEffect(() => {
    const made = makeEditor(host.current, {
      dialect,
      database: () => database,
      changed: (now) => (text.value = now),
      keys: { "Mod-Enter": check, "Mod-e": check },
      hint: "CREATE OR REPLACE STREAM … – Ctrl+Enter checks it, Ctrl+Space completes",
    });
    editor.current = made;
    made.show(null, text.value);
    made.focus();
    return () => {
      checked.value?.stop?.();
      made.close();
    };
  }, []);
  useCommands([
    { name: "Check the statement", keys: "Ctrl Enter", run: check },
    { name: "Discard the edit", run: close },
  ]);
  const plan = checked.value;
  const hindered = hindrance(plan, text.value, stream);
  return html`
    ${stream.sql !== began.current &&
    html`<p class="note">The statement of the stream has changed since you began; <em>Discard</em> shows it.</p>`}
    <div class="editor" ref=${host}></div>
    <div class="row toolbar">
      <button class="main" onClick=${check}>Check</button>
      <button class="danger" disabled=${hindered !== null} onClick=${() => (asking.value = true)}>Replace</button>
      <button onClick=${close}>Discard</button>
      ${plan && html`<${Elapsed} state=${plan} />`}
    </div>
    ${hindered && html`<p class="soft">${hindered}</p>`}
    <${Fault} fault=${plan?.fault} />
    ${wantsHistory(plan, text.value) && html`<p><button onClick=${fillHistory}>Write FILL_HISTORY 1</button></p>`}
    ${plan?.lines && html`<section aria-label="Plan"><${PlanLines} lines=${plan.lines} /></section>`}
    ${asking.value && html`
      <${ConfirmDialog} title=${`Replace the stream ${name}`} name=${name} doing="Replace it" run=${replace}
        close=${() => (asking.value = false)}>
        <pre class="text" tabindex="0" aria-label="What is run">${text.value}</pre>
        <${PlanLines} lines=${becomes(plan.lines)} />
      <//>
    `}
  `;
}
