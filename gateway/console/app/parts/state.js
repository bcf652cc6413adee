// A state as an icon and a word, never as a colour alone.
import { html } from "../../vendor/preact.js";

const LOOKS = {
  enabled: ["●", "good"],
  disabled: ["■", "still"],
  ready: ["●", "good"],
  running: ["●", "good"],
  ok: ["●", "good"],
  live: ["●", "good"],
  init: ["◐", "busy"],
  waiting: ["◐", "busy"],
  starting: ["◐", "busy"],
  paused: ["❚❚", "still"],
  stopped: ["■", "still"],
  throttled: ["▲", "busy"],
  retrying: ["▲", "busy"],
  look: ["▲", "busy"],
  warning: ["▲", "busy"],
  failing: ["▲", "bad"],
  stalled: ["▲", "bad"],
  error: ["✖", "bad"],
  failed: ["✖", "bad"],
  critical: ["✖", "bad"],
  bad: ["✖", "bad"],
  offline: ["✖", "bad"],
};

/** The icon and the tone of a state. */
export function looksOf(word) {
  return LOOKS[word] ?? ["○", "still"];
}

export function State({ word }) {
  const [icon, tone] = looksOf(word);
  return html`<span class=${`state ${tone}`}><span aria-hidden="true">${icon}</span> ${word}</span>`;
}
