// A token by one click. It is shown once, and the browser keeps it nowhere.
import { html, useSignal } from "../../../vendor/preact.js";
import { ask, faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { user } from "../../core/session.js";
import { CopyButton } from "../../parts/copy.js";
import { Fault } from "../../parts/fault.js";
import { shellWord } from "./snippets.js";

const MONTH = 30 * 86400;

/** @param made is told each token that was made */
export function Token({ made }) {
  const answer = useSignal(null);
  const busy = useSignal(false);
  const fault = useSignal(null);
  async function make() {
    busy.value = true;
    fault.value = null;
    try {
      answer.value = await ask("/v1/tokens", {});
      made(answer.value.token);
      announce("The token is made, and stands in the programs");
    } catch (error) {
      fault.value = faultFrom(error);
    } finally {
      busy.value = false;
    }
  }
  const longer = `curl -sS -u ${shellWord(user.value)} ${shellWord(`${location.origin}/v1/tokens`)} -d '{"seconds": ${MONTH}}'`;
  return html`
    <p>A token stands for you, with all your rights, and programs need no password. One that is made here ends with this session at the latest.</p>
    <p><button class="main" disabled=${busy.value} onClick=${make}>Make a token</button></p>
    <${Fault} fault=${fault.value} />
    ${answer.value && html`
      <p class="command"><code id="token">${answer.value.token}</code><${CopyButton} text=${answer.value.token} label="Copy the token" /></p>
      <p>It ends on ${timeOf(answer.value.expires)}. It is shown here only until you leave this page.</p>
    `}
    <details>
      <summary>A token for longer</summary>
      <p>For up to 366 days, with your password; this one is for 30 days:</p>
      <p class="command"><code>${longer}</code><${CopyButton} text=${longer} label="Copy the command" /></p>
    </details>
  `;
}

function timeOf(seconds) {
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
