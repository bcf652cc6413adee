// Users: who there is, their roles and rights, their tokens, and what the audit trail says.
import { html, useSignal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { usePoll } from "../../core/poll.js";
import { objects, query, quoteName } from "../../core/query.js";
import { user, who } from "../../core/session.js";
import { ConfirmDialog } from "../../parts/dialog.js";
import { Fault } from "../../parts/fault.js";
import { AuditTrail } from "./audit.js";
import { Grants } from "./grants.js";
import { RoleList } from "./role_list.js";
import { UserList } from "./user_list.js";

const SECONDS = 5;

export function Users() {
  const { answer, fault, again } = usePoll(async (signal) => {
    const [users, roles, grants] = await Promise.all([
      objects("SELECT * FROM information_schema.ins_users ORDER BY name", { signal }),
      objects("SELECT * FROM information_schema.ins_roles ORDER BY name", { signal }),
      objects("SELECT * FROM information_schema.ins_user_privileges", { signal }),
    ]);
    return { users, roles, grants };
  }, SECONDS);
  const wrong = useSignal(null);
  /** Run a statement; *said* is announced when it is done. Gives whether it was. */
  async function run(statement, said) {
    wrong.value = null;
    try {
      await query(statement);
      announce(said);
      again();
      return true;
    } catch (error) {
      wrong.value = faultFrom(error);
      return false;
    }
  }
  const found = answer.value;
  const admin = who.value.admin;
  return html`
    <h1>Users</h1>
    <${Fault} fault=${fault.value} />
    <div class="stuck"><${Fault} fault=${wrong.value} /></div>
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && html`
      ${!admin && html`<p>You see what concerns yourself; who has ADMIN sees everybody.</p>`}
      <${UserList} users=${found.users} roles=${found.roles} admin=${admin} run=${run} done=${again} />
      <${RoleList} roles=${found.roles} admin=${admin} done=${again} />
      <${Grants} ...${found} admin=${admin} run=${run} />
      <${OwnTokens} />
      ${admin && html`<${AuditTrail} />`}
    `}
  `;
}

/** The end of all that was given to oneself, this session too. */
function OwnTokens() {
  const asking = useSignal(false);
  const end = () => query(`REVOKE TOKENS FROM ${quoteName(user.value)}`);
  return html`
    <h2>Your tokens</h2>
    <p>A token is checked by its signature, so there is no list of them. The page Connect makes one; here all of yours end, and your sessions with them.</p>
    <p><button class="danger" onClick=${() => (asking.value = true)}>End all my tokens</button></p>
    ${asking.value && html`
      <${ConfirmDialog} title="End all my tokens" name=${user.value} doing="End them" run=${end} close=${() => (asking.value = false)}>
        <p>Programs that use a token of yours are refused from now on. You have to log in again.</p>
      <//>
    `}
  `;
}
