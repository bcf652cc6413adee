// SQL: an editor with tabs, the schema beside it, and the answer below.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { linkTo } from "../../core/router.js";
import { databases } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { useDialect } from "./dialect.js";
import { makeEditor } from "./editor.js";
import { Elapsed } from "./elapsed.js";
import { closePlan, explainIn, plans } from "./explaining.js";
import { History, loadHistory } from "./history.js";
import { Plan } from "./plan.js";
import { Result } from "./result.js";
import { runIn, runs } from "./running.js";
import { Tabs, change, current, loadTabs, open, openTab } from "./tabs.js";
import { SchemaTree } from "./tree.js";

export function SqlPage({ parts }) {
  const { dialect, fault } = useDialect();
  useEffect(() => {
    loadTabs();
    loadHistory();
    if (parts[0]) showAsked(parts[0], parts[1] ?? "");
  }, []);
  return html`
    <h1 class="unseen">SQL</h1>
    <${Fault} fault=${fault.value} />
    ${dialect.value ? html`<${Workbench} dialect=${dialect.value} />` : !fault.value && html`<p>Loading …</p>`}
  `;
}

/** Show the statement of a link once: whoever loads the page again wants no second tab of it. */
function showAsked(text, database) {
  if (current().text.trim()) openTab(text, database);
  else change({ text, database });
  history.replaceState(null, "", linkTo("sql"));
}

function Workbench({ dialect }) {
  const host = useRef(null);
  const editor = useRef(null);
  const states = useRef(new Map());
  const shown = useRef(null);
  const sideOpen = useSignal(innerWidth > 900);

  function run() {
    const tab = current();
    runIn(tab.id, editor.current.selection() || tab.text, tab.database);
  }
  function explain() {
    const tab = current();
    const selected = editor.current.selection();
    explainIn(tab.id, selected || tab.text, tab.database, selected ? selected.length : editor.current.cursor());
  }
  useEffect(() => {
    const made = makeEditor(host.current, {
      dialect,
      database: () => current().database,
      changed: (text) => change({ text }),
      keys: { "Mod-Enter": run, "Mod-e": explain },
      hint: "SELECT … – Ctrl+Enter runs it, Ctrl+E explains it, Ctrl+Space completes",
    });
    editor.current = made;
    return () => made.close();
  }, []);
  useEffect(() => {
    if (shown.current) states.current.set(shown.current, editor.current.state());
    shown.current = open.value;
    editor.current.show(states.current.get(open.value), current().text);
    editor.current.focus();
  }, [open.value]);
  useCommands([
    { name: "Run the statement", keys: "Ctrl Enter", run },
    { name: "Explain the statement", keys: "Ctrl E", run: explain },
    { name: "New tab", run: () => openTab() },
  ]);
  const tab = current();
  const plan = plans.value[tab.id];
  return html`
    <div class="workbench">
      <details class="side" open=${sideOpen.value} onToggle=${(event) => (sideOpen.value = event.target.open)}>
        <summary>Schema and history</summary>
        <${SchemaTree} use=${(text) => (tab.text.trim() ? openTab(text) : editor.current.insert(text))} />
        <${History} />
      </details>
      <div class="desk">
        <${Tabs} />
        <div id="statement" role="tabpanel" aria-labelledby=${`tab-${tab.id}`}>
          <div class="editor" ref=${host}></div>
          <${Toolbar} tab=${tab} run=${run} explain=${explain} check=${() => editor.current.check()} />
          <div class=${plan ? "answers with-plan" : "answers"}>
            <div class="answer"><${Result} run=${runs.value[tab.id]} /></div>
            ${plan && html`<${Plan} key=${tab.id} state=${plan} close=${() => closePlan(tab.id)} />`}
          </div>
        </div>
      </div>
    </div>
  `;
}

function Toolbar({ tab, run, explain, check }) {
  const names = useSignal([]);
  useEffect(() => {
    databases().then((found) => (names.value = found), () => {});
  }, [tab.id, runs.value[tab.id]?.elapsed]);
  const state = runs.value[tab.id];
  const listed = tab.database && !names.value.includes(tab.database) ? [tab.database, ...names.value] : names.value;
  function choose(event) {
    change({ database: event.target.value });
    check();
  }
  return html`
    <div class="row toolbar">
      ${state?.stop
        ? html`<button class="danger" onClick=${state.stop}>${state.subject ? "Stop" : "Cancel"}</button>`
        : html`<button class="main" onClick=${run}>Run</button>`}
      <button title="What the statement at the cursor would do; it is not run" onClick=${explain}>Explain</button>
      <select aria-label="Database" value=${tab.database} onChange=${choose}>
        <option value="">no database</option>
        ${listed.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      ${state && html`<${Elapsed} state=${state} />`}
    </div>
  `;
}
