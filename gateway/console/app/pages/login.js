// Log in with a name and a password, or by the link that `penstock login` prints.
import { html, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "../core/http.js";
import { farewell, logIn } from "../core/session.js";
import { Command } from "../parts/copy.js";
import { Fault } from "../parts/fault.js";

/** The gateway sends whoever opens a used link to /?link=ended. */
const linkEnded = new URLSearchParams(location.search).get("link") === "ended";
if (linkEnded) history.replaceState(null, "", "/" + location.hash);

export function LogIn() {
  const fault = useSignal(null);
  const busy = useSignal(false);
  const name = useRef(null);
  useEffect(() => {
    document.title = "Log in – Penstock";
    name.current.focus();
  }, []);
  async function submit(event) {
    event.preventDefault();
    const fields = new FormData(event.target);
    busy.value = true;
    fault.value = null;
    try {
      await logIn(fields.get("user"), fields.get("password"));
    } catch (error) {
      fault.value = faultFrom(error);
      busy.value = false;
    }
  }
  return html`
    <main class="login" id="main">
      <h1>Penstock</h1>
      ${linkEnded && html`<p class="note" role="status">That link was used before, or is too old. Log in here, or make another link.</p>`}
      ${farewell.value && html`<p role="status">${farewell.value}. Log in again.</p>`}
      <form onSubmit=${submit}>
        <label>User <input ref=${name} name="user" autocomplete="username" required spellcheck=${false} /></label>
        <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
        <button type="submit" class="main" disabled=${busy.value}>${busy.value ? "Logging in …" : "Log in"}</button>
        <${Fault} fault=${fault.value} />
      </form>
      <h2>Without a password</h2>
      <p>On the machine of the mesh, this prints a link that opens the console, logged in. It is good once.</p>
      <p><${Command} text="penstock login" /></p>
    </main>
  `;
}
