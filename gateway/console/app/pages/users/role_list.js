// The roles and who has them.
import { html, useSignal } from "../../../vendor/preact.js";
import { announce } from "../../core/live.js";
import { query, quoteName } from "../../core/query.js";
import { ConfirmDialog } from "../../parts/dialog.js";
import { FormDialog } from "../../parts/form_dialog.js";
import { List } from "../../parts/list.js";

export function RoleList({ roles, admin, done }) {
  const adding = useSignal(false);
  const dropping = useSignal(null);
  const drop = async () => {
    await query(`DROP ROLE ${quoteName(dropping.value)}`);
    announce(`${dropping.value} is dropped`);
    done();
  };
  const add = async ({ name }) => {
    await query(`CREATE ROLE ${quoteName(name)}`);
    announce(`${name} is made`);
    done();
  };
  const columns = [
    { title: "Role", show: ({ name }) => name },
    { title: "Users", show: ({ users }) => users || "nobody" },
    ...(admin
      ? [{ title: "Actions", show: ({ name }) => html`<button class="danger" aria-label=${`Drop ${name}`} onClick=${() => (dropping.value = name)}>Drop</button>` }]
      : []),
  ];
  return html`
    <h2>Roles</h2>
    <${List} label="Roles" rows=${roles} columns=${columns} keyOf=${({ name }) => name} empty="There is none." />
    ${admin && html`<p><button onClick=${() => (adding.value = true)}>Add a role</button></p>`}
    ${adding.value && html`
      <${FormDialog} title="Add a role" doing="Add" run=${add} close=${() => (adding.value = false)}
        fields=${[{ name: "name", label: "Name" }]} />
    `}
    ${dropping.value && html`
      <${ConfirmDialog} title=${`Drop the role ${dropping.value}`} name=${dropping.value} doing="Drop it" run=${drop} close=${() => (dropping.value = null)}>
        <p>Who has it loses the rights that come with it.</p>
      <//>
    `}
  `;
}
