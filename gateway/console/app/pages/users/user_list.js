// The users, and what who has ADMIN can do with each.
import { html, useSignal } from "../../../vendor/preact.js";
import { announce } from "../../core/live.js";
import { query, quoteName, quoteText } from "../../core/query.js";
import { user as me } from "../../core/session.js";
import { ConfirmDialog } from "../../parts/dialog.js";
import { FormDialog } from "../../parts/form_dialog.js";
import { List } from "../../parts/list.js";
import { State } from "../../parts/state.js";

/** @param run runs a statement and says what was done; @param done is called after a dialog's */
export function UserList({ users, roles, admin, run, done }) {
  const adding = useSignal(false);
  const add = async ({ name, password }) => {
    await query(`CREATE USER ${quoteName(name)} PASS ${quoteText(password)}`);
    announce(`${name} is made`);
    done();
  };
  const columns = [
    { title: "User", show: (one) => html`${one.name}${one.super === 1 && html` <small class="soft">may do everything</small>`}` },
    { title: "State", show: (one) => html`<${State} word=${one.enable === 1 ? "enabled" : "disabled"} />` },
    { title: "Roles", show: (one) => html`<${UsersRoles} user=${one} roles=${roles} admin=${admin} run=${run} />` },
    { title: "Made", show: (one) => one.create_time ?? "with the mesh" },
    ...(admin ? [{ title: "Actions", show: (one) => html`<${Actions} user=${one} run=${run} done=${done} />` }] : []),
  ];
  return html`
    <${List} label="Users" rows=${users} columns=${columns} keyOf=${({ name }) => name} empty="None." />
    ${admin && html`<p><button onClick=${() => (adding.value = true)}>Add a user</button></p>`}
    ${adding.value && html`
      <${FormDialog} title="Add a user" doing="Add" run=${add} close=${() => (adding.value = false)}
        fields=${[
          { name: "name", label: "Name" },
          { name: "password", label: "Password", type: "password" },
        ]} />
    `}
  `;
}

function UsersRoles({ user, roles, admin, run }) {
  const held = (user.roles ?? "").split(", ").filter(Boolean);
  const free = roles.map(({ name }) => name).filter((name) => !held.includes(name));
  if (!admin || user.super === 1) return held.join(", ") || "none";
  const take = (role) => run(`REVOKE ROLE ${quoteName(role)} FROM ${quoteName(user.name)}`, `${user.name} has ${role} no more`);
  function give(event) {
    const role = event.target.value;
    event.target.value = "";
    run(`GRANT ROLE ${quoteName(role)} TO ${quoteName(user.name)}`, `${user.name} has ${role}`);
  }
  return html`
    <div class="row wraps">
      ${held.map((role) => html`<button key=${role} aria-label=${`Take ${role} from ${user.name}`} onClick=${() => take(role)}>${role} <span aria-hidden="true">✖</span></button>`)}
      ${free.length > 0 && html`
        <select aria-label=${`Give a role to ${user.name}`} value="" onChange=${give}>
          <option value="">add …</option>
          ${free.map((role) => html`<option key=${role} value=${role}>${role}</option>`)}
        </select>
      `}
    </div>
  `;
}

function Actions({ user, run, done }) {
  const asking = useSignal("");
  const close = () => (asking.value = "");
  const { name } = user;
  // the mesh's own user is a setting, and one's own password wants the old one, which a session has not
  if (user.super === 1 || name.toLowerCase() === me.value.toLowerCase()) return "–";
  const enabled = user.enable === 1;
  const change = async (statement, said) => {
    await query(statement);
    announce(said);
    done();
  };
  const button = (words, of, ask, look) => html`
    <button class=${look} aria-label=${`${words}${of} ${name}`} onClick=${ask}>${words}</button>
  `;
  return html`
    <div class="row wraps">
      ${button(enabled ? "Disable" : "Enable", "", () => run(`ALTER USER ${quoteName(name)} ENABLE ${enabled ? 0 : 1}`, `${name} is ${enabled ? "disabled" : "enabled"}`))}
      ${button("New password", " for", () => (asking.value = "password"))}
      ${button("End tokens", " of", () => (asking.value = "tokens"), "danger")}
      ${button("Drop", "", () => (asking.value = "drop"), "danger")}
    </div>
    ${asking.value === "password" && html`
      <${FormDialog} title=${`New password for ${name}`} doing="Set it" close=${close}
        run=${({ password }) => change(`ALTER USER ${quoteName(name)} PASS ${quoteText(password)}`, `${name} has a new password`)}
        fields=${[{ name: "password", label: "Password", type: "password" }]}>
        <p>Sessions and tokens of ${name} end.</p>
      <//>
    `}
    ${asking.value === "tokens" && html`
      <${ConfirmDialog} title=${`End all tokens of ${name}`} name=${name} doing="End them" close=${close}
        run=${() => change(`REVOKE TOKENS FROM ${quoteName(name)}`, `the tokens of ${name} are ended`)}>
        <p>Sessions of ${name} end, too.</p>
      <//>
    `}
    ${asking.value === "drop" && html`
      <${ConfirmDialog} title=${`Drop the user ${name}`} name=${name} doing="Drop it" close=${close}
        run=${() => change(`DROP USER ${quoteName(name)}`, `${name} is dropped`)}>
        <p>What ${name} has made stays. Rights, sessions and tokens go.</p>
      <//>
    `}
  `;
}
