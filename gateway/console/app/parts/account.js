// Who is logged in, and the way out.
import { html, useSignal } from "../../vendor/preact.js";
import { useCommands } from "../core/commands.js";
import { faultFrom } from "../core/http.js";
import { logOut, user, who } from "../core/session.js";
import { Fault } from "./fault.js";

export function Account() {
  const fault = useSignal(null);
  async function leave(options) {
    try {
      await logOut(options);
    } catch (error) {
      fault.value = faultFrom(error);
    }
  }
  useCommands([{ name: "Log out", last: true, run: () => leave() }]);
  const roles = who.value.roles ?? [];
  return html`
    <details class="account">
      <summary aria-label=${`Logged in as ${user.value}`}>${user.value}</summary>
      <div class="pop">
        <p>Logged in as <strong>${user.value}</strong>${who.value.admin ? ", who may do everything" : ""}.</p>
        ${roles.length > 0 && html`<p>Roles: ${roles.join(", ")}</p>`}
        <button onClick=${() => leave()}>Log out</button>
        <button onClick=${() => leave({ everywhere: true })}>Log out everywhere</button>
        <${Fault} fault=${fault.value} />
      </div>
    </details>
  `;
}
