// Where the mesh listens, and what each port is for.
import { html } from "../../../vendor/preact.js";
import { CopyButton } from "../../parts/copy.js";
import { List } from "../../parts/list.js";
import { hostOf, isLocal } from "./snippets.js";

const TOKEN = "token, or name and password";

export function Addresses({ info }) {
  const listed = [
    { port: "SQL and rows over HTTP", address: location.origin, login: TOKEN },
    { port: "Rows over a WebSocket", address: `${location.origin.replace(/^http/, "ws")}/v1/ingest`, login: TOKEN },
    { port: "Subscriptions", address: info.notifier_url, login: TOKEN },
    { port: "Arrow Flight", address: info.store_url, login: TOKEN },
    { port: "Kafka", address: info.kafka_bootstrap, login: kafkaLogin(info) },
    { port: "Links of other deployments", address: info.federation_url, login: TOKEN },
  ].filter(({ address }) => address);
  const columns = [
    { title: "For", show: ({ port }) => port },
    { title: "Address", show: ({ address }) => html`<${Address} address=${address} />` },
    { title: "Log in with", show: ({ login }) => login },
    { title: "Copy", show: ({ address, port }) => html`<${CopyButton} text=${address} name=${`Copy the address of ${port}`} />` },
  ];
  return html`<${List} label="Addresses" rows=${listed} columns=${columns} keyOf=${({ port }) => port} empty="None." />`;
}

/** The address as the mesh tells it; one of the mesh's own machine is no use on another. */
function Address({ address }) {
  const elsewhere = isLocal(hostOf(address)) && !isLocal(location.hostname);
  return html`<code>${address}</code>${elsewhere && html`<br /><small>on the mesh's own machine only</small>`}`;
}

function kafkaLogin({ kafka_security: security, kafka_users: users }) {
  if (!security.startsWith("SASL")) return "nothing";
  return users ? "name and password (SCRAM-SHA-256)" : "a user of that Kafka";
}
