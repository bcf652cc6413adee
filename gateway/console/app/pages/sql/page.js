// SQL: an editor with tabs, the schema beside it, and the answer below.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { ask, faultFrom } from "../../core/http.js";
import { linkTo } from "../../core/router.js";
import { databases } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { makeEditor } from "./editor.js";
import { History, loadHistory } from "./history.js";
import { Result } from "./result.js";
import { runIn, runs } from "./running.js";
import { Tabs, change, current, loadTabs, open, openTab } from "./tabs.js";
import { SchemaTree } from "./tree.js";

export function SqlPage({ parts }) {
  const dialect = useSignal(null);
  const fault = useSignal(null);
  useEffect(() => {
    loadTabs();
    loadHistory();
    if (parts[0]) showAsked(parts[0], parts[1] ?? "");
    ask("/v1/dialect").then(
      (found) => (dialect.value = found),
      (error) => (fault.value = faultFrom(error)),
    );
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
  useEffect(() => {
    const made = makeEditor(host.current, {
      dialect,
      database: () => current().database,
      changed: (text) => change({ text }),
      run,
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
    { name: "New tab", run: () => openTab() },
  ]);
  const tab = current();
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
          <${Toolbar} tab=${tab} run=${run} check=${() => editor.current.check()} />
          <${Result} run=${runs.value[tab.id]} />
        </div>
      </div>
    </div>
  `;
}

function Toolbar({ tab, run, check }) {
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
      <select aria-label="Database" value=${tab.database} onChange=${choose}>
        <option value="">no database</option>
        ${listed.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      ${state && html`<${Elapsed} state=${state} />`}
    </div>
  `;
}

/** Counts while a statement runs, and stays when it has run. */
function Elapsed({ state }) {
  const now = useSignal(performance.now());
  useEffect(() => {
    if (!state.stop) return undefined;
    const timer = setInterval(() => (now.value = performance.now()), 100);
    return () => clearInterval(timer);
  }, [state]);
  const elapsed = state.elapsed ?? Math.max(now.value - state.started, 0);
  return html`<span class="soft">${elapsed < 1000 ? `${Math.round(elapsed)} ms` : `${(elapsed / 1000).toFixed(1)} s`}</span>`;
}
