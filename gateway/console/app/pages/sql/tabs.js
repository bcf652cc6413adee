// The tabs of the SQL page: texts that the browser keeps.
import { html, signal } from "../../../vendor/preact.js";
import { keep, recall } from "../../core/keep.js";
import { titleOf } from "./places.js";

/** `{id, text, database}` of each tab, and the id of the one that is open. */
export const tabs = signal([]);
export const open = signal(null);

const MOST_KEPT = 200_000;

export function loadTabs() {
  const held = recall("tabs", []).filter((tab) => typeof tab.text === "string");
  tabs.value = held.length > 0 ? held : [blank()];
  const wanted = recall("open", null);
  open.value = tabs.value.some(({ id }) => id === wanted) ? wanted : tabs.value[0].id;
}

export function current() {
  return tabs.value.find(({ id }) => id === open.value);
}

/** Change the open tab; the browser keeps it. */
export function change(parts) {
  tabs.value = tabs.value.map((tab) => (tab.id === open.value ? { ...tab, ...parts } : tab));
  save();
}

export function openTab(text = "", database = current()?.database ?? "") {
  const made = { ...blank(), text, database };
  tabs.value = [...tabs.value, made];
  openId(made.id);
}

export function openId(id) {
  open.value = id;
  save();
}

export function closeTab(id) {
  const at = tabs.value.findIndex((tab) => tab.id === id);
  const left = tabs.value.filter((tab) => tab.id !== id);
  tabs.value = left.length > 0 ? left : [blank()];
  if (open.value === id) open.value = tabs.value[Math.min(at, tabs.value.length - 1)].id;
  save();
}

function blank() {
  return { id: `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`, text: "", database: "" };
}

function save() {
  keep("tabs", tabs.value.filter(({ text }) => text.length <= MOST_KEPT));
  keep("open", open.value);
}

export function Tabs() {
  function press(event, at) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = tabs.value[(at + step + tabs.value.length) % tabs.value.length];
      openId(next.id);
      requestAnimationFrame(() => document.getElementById(`tab-${next.id}`)?.focus());
    } else if (event.key === "Delete") closeTab(tabs.value[at].id);
  }
  return html`
    <div class="tabs">
      <div role="tablist" aria-label="Statements">
        ${tabs.value.map(
          (tab, at) => html`
            <button role="tab" key=${tab.id} id=${`tab-${tab.id}`} aria-selected=${tab.id === open.value}
              aria-controls="statement" tabindex=${tab.id === open.value ? 0 : -1}
              onClick=${() => openId(tab.id)} onKeyDown=${(event) => press(event, at)}>${titleOf(tab.text)}</button>
          `,
        )}
      </div>
      <button aria-label="New tab" title="New tab" onClick=${() => openTab()}>+</button>
      <button aria-label="Close this tab" title="Close this tab" onClick=${() => closeTab(open.value)}>×</button>
    </div>
  `;
}
