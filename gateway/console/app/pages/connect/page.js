// Connect: where the mesh listens, a token by one click, and programs that need no more filling in.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";
import { ask, faultFrom } from "../../core/http.js";
import { objects, quoteText } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { tables } from "../../core/schema.js";
import { user } from "../../core/session.js";
import { CopyButton } from "../../parts/copy.js";
import { Fault } from "../../parts/fault.js";
import { Addresses } from "./addresses.js";
import { NO_TOKEN, snippetsFor } from "./snippets.js";
import { Token } from "./token.js";

const DATABASES =
  "SELECT name, topic FROM information_schema.ins_databases" +
  ` WHERE name NOT IN (${quoteText("information_schema")}, ${quoteText("performance_schema")}) ORDER BY name`;
/** Named in the programs while there is no database. */
const EXAMPLE = { name: "plant", topic: "in.plant" };

export function Connect() {
  const found = useSignal(null);
  const fault = useSignal(null);
  const token = useSignal("");
  useEffect(() => {
    Promise.all([ask("/v1/info"), objects(DATABASES)]).then(
      ([info, databases]) => (found.value = { info, databases }),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  return html`
    <h1>Connect</h1>
    <${Fault} fault=${fault.value} />
    ${!found.value && !fault.value && html`<p>Loading …</p>`}
    ${found.value && html`
      <h2>Addresses</h2>
      <${Addresses} info=${found.value.info} />
      <h2>Token</h2>
      <${Token} made=${(made) => (token.value = made)} />
      <h2>Programs</h2>
      <${Programs} ...${found.value} token=${token.value || NO_TOKEN} />
    `}
  `;
}

function Programs({ info, databases, token }) {
  const name = useSignal(databases[0]?.name ?? "");
  const table = useSignal("");
  const names = useSignal([]);
  const fault = useSignal(null);
  useEffect(() => {
    const wanted = name.value;
    if (!wanted) return;
    tables(wanted).then(
      (listed) => {
        if (wanted !== name.value) return;
        names.value = listed.map((one) => one.name);
        table.value = names.value[0] ?? "";
      },
      (error) => (fault.value = faultFrom(error)),
    );
  }, [name.value]);
  const database = databases.find((one) => one.name === name.value) ?? EXAMPLE;
  const place = {
    url: location.origin,
    store: info.store_url,
    kafka: { bootstrap: info.kafka_bootstrap, security: info.kafka_security, users: info.kafka_users },
    user: user.value,
    token,
    database: database.name,
    table: table.value,
    topic: database.topic,
  };
  return html`
    <${Fault} fault=${fault.value} />
    ${databases.length > 0
      ? html`<div class="row"><${Choice} label="Database" chosen=${name} names=${databases.map((one) => one.name)} />
          ${names.value.length > 0 && html`<${Choice} label="Table" chosen=${table} names=${names.value} />`}</div>`
      : html`<p class="note">There is no database that you may see. Programs that write need one:
          <a href=${linkTo("sql", "CREATE DATABASE plant")}>CREATE DATABASE plant</a></p>`}
    ${token === NO_TOKEN && html`<p>Make a token above, and it stands in these programs in place of <code>${NO_TOKEN}</code>.</p>`}
    ${location.protocol === "https:" && html`<p>If your own authority signed the certificate, the programs need its file:
      <code>--cacert</code> for curl, <code>ca=</code> of ConnectionOptions, <code>tls_root_certs=</code> of FlightClient.</p>`}
    ${snippetsFor(place).map((one) => html`<${Snippet} key=${one.title} ...${one} />`)}
  `;
}

function Choice({ label, chosen, names }) {
  return html`
    <label>${label}
      <select value=${chosen.value} onChange=${(event) => (chosen.value = event.target.value)}>
        ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </label>
  `;
}

function Snippet({ title, needs, text, note }) {
  return html`
    <section aria-label=${title}>
      <div class="row spread">
        <h3>${title} <small class="soft">needs <code>${needs}</code></small></h3>
        <${CopyButton} text=${text} label=${`Copy ${title}`} />
      </div>
      <pre class="text" tabindex="0">${text}</pre>
      ${note && html`<p class="soft">${note}</p>`}
    </section>
  `;
}
