// A text with a button that copies it.
import { html, useSignal } from "../../vendor/preact.js";
import { announce } from "../core/live.js";

/** Put *text* on the clipboard; also on pages without TLS, where browsers keep the new way shut. */
export async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

/** @param name what a screen reader says, where *label* alone says too little */
export function CopyButton({ text, label = "Copy", name }) {
  const done = useSignal(false);
  async function copy() {
    await copyText(typeof text === "function" ? text() : text);
    done.value = true;
    announce("Copied");
    setTimeout(() => (done.value = false), 1500);
  }
  return html`<button aria-label=${name} onClick=${copy}>${done.value ? "Copied" : label}</button>`;
}

export function Command({ text }) {
  return html`<span class="command"><code>${text}</code><${CopyButton} text=${text} /></span>`;
}
