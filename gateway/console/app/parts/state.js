// A state as an icon and a word, never as a colour alone.
import { html } from "../../vendor/preact.js";

const LOOKS = {
  enabled: ["●", "good"],
  disabled: ["■", "still"],
  ready: ["●", "good"],
  ok: ["●", "good"],
  live: ["●", "good"],
  init: ["◐", "busy"],
  waiting: ["◐", "busy"],
  paused: ["❚❚", "still"],
  stopped: ["■", "still"],
  throttled: ["▲", "busy"],
  look: ["▲", "busy"],
  failing: ["▲", "bad"],
  failed: ["✖", "bad"],
  bad: ["✖", "bad"],
  offline: ["✖", "bad"],
};

export function State({ word }) {
  const [icon, tone] = LOOKS[word] ?? ["○", "still"];
  return html`<span class=${`state ${tone}`}><span aria-hidden="true">${icon}</span> ${word}</span>`;
}
