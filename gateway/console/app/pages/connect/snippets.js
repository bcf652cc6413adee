// Programs that reach this mesh, filled with its addresses. Pure.
import { quotePath } from "../../core/query.js";

/** Stands for a token that was not made yet. */
export const NO_TOKEN = "TOKEN";
const WRITTEN = "weather,site=north temperature=21.5";

/**
 * `{title, needs, text, note?}` of each program.
 * @param place `{url, store, kafka: {bootstrap, security, users}, user, token, database, table, topic}`;
 *   without a table the programs ask something that needs none
 */
export function snippetsFor(place) {
  return [python, curl, lineProtocol, flight, kafka, jdbc].map((write) => write(place));
}

/** Whether an address is one of the machine that it is used on: no other reaches it. */
export function isLocal(host) {
  return /^(127\.|localhost$|\[?::1\]?$)/.test(host);
}

/** The host of `scheme://host:port/path` or `host:port`. */
export function hostOf(address) {
  return address.replace(/^[\w+]+:\/\//, "").replace(/[/,].*$/, "").replace(/:\d+$/, "");
}

/** A text as Python has it. */
function literal(text) {
  return JSON.stringify(text);
}

/** A text as one word of a shell. */
export function shellWord(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

function question({ database, table }) {
  return table ? `SELECT * FROM ${quotePath(database, table)} LIMIT 10` : "SELECT 1 AS one";
}

function python(place) {
  const text = `import penstock

client = penstock.connect(${literal(place.url)}, token=${literal(place.token)})
result = client.query(${literal(question(place))})
for row in result.rows:
    print(row)`;
  return { title: "Python", needs: "pip install penstock", text };
}

function curl(place) {
  const text = `curl -sS ${shellWord(`${place.url}/v1/query`)} \\
  -H ${shellWord(`Authorization: Bearer ${place.token}`)} \\
  --data-binary ${shellWord(question(place))}`;
  return { title: "curl", needs: "curl", text };
}

function lineProtocol(place) {
  const address = `${place.url}/write?db=${encodeURIComponent(place.database)}`;
  const text = `curl -sS ${shellWord(address)} \\
  -H ${shellWord(`Authorization: Bearer ${place.token}`)} \\
  --data-binary ${shellWord(WRITTEN)}`;
  const note = "It makes the table weather where there is none. Telegraf and clients of InfluxDB write to the same address.";
  return { title: "Line protocol", needs: "curl", text, note };
}

function flight(place) {
  const text = `import pyarrow.flight as flight

client = flight.FlightClient(${literal(place.store)})
login = [(b"authorization", ${literal(`Bearer ${place.token}`)}.encode())]
ticket = flight.Ticket(${literal(question(place))}.encode())
reader = client.do_get(ticket, flight.FlightCallOptions(headers=login))
print(reader.read_all())`;
  const note = "Drivers of Arrow Flight SQL (ADBC, JDBC) take the same address.";
  return { title: "Arrow Flight", needs: "pip install pyarrow", text, note };
}

function kafka(place) {
  const { note, lines } = kafkaLogin(place);
  const text = `import io, json, os
import fastavro, httpx
from confluent_kafka import Consumer

settings = {
    "bootstrap.servers": ${literal(place.kafka.bootstrap)},
${lines.map((line) => `    ${line},\n`).join("")}    "group.id": ${literal(place.user)},
    "auto.offset.reset": "earliest",
}
schemas = {}


def schema_of(number):
    if number not in schemas:
        found = httpx.get(
            f${literal(`${place.url}/schemas/ids/{number}`)},
            headers={"Authorization": ${literal(`Bearer ${place.token}`)}},
        )
        schemas[number] = fastavro.parse_schema(json.loads(found.raise_for_status().json()["schema"]))
    return schemas[number]


consumer = Consumer(settings)
consumer.subscribe([${literal(place.topic)}])
while True:
    message = consumer.poll(1)
    if message is None:
        continue
    if message.error():
        raise SystemExit(message.error().str())
    value = message.value()
    number = int.from_bytes(value[1:5], "big")  # 1: a note of the mesh, no rows
    if number != 1:
        print(fastavro.schemaless_reader(io.BytesIO(value[5:]), schema_of(number))["rows"])`;
  return { title: "Kafka", needs: "pip install confluent-kafka fastavro httpx", text, note };
}

/** What a Kafka client logs in with: users of the mesh are Kafka's where the mesh says so. */
function kafkaLogin({ kafka: { security, users }, user }) {
  if (!security.startsWith("SASL")) {
    const lines = security === "PLAINTEXT" ? [] : [`"security.protocol": ${literal(security)}`];
    return { lines, note: "This Kafka asks for no login." };
  }
  const lines = [
    `"security.protocol": ${literal(security)}`,
    '"sasl.mechanism": "SCRAM-SHA-256"',
    `"sasl.username": ${literal(user)}`,
    '"sasl.password": os.environ["PENSTOCK_PASSWORD"]',
  ];
  const note = users
    ? "Kafka takes no tokens: put your password into PENSTOCK_PASSWORD. It needs READ on the database."
    : "This Kafka has users of its own: ask its operator for a name and a password.";
  return { lines, note };
}

function jdbc(place) {
  const { protocol, hostname, port } = new URL(place.url);
  const secure = protocol === "https:";
  const at = `${hostname}:${port || (secure ? 443 : 80)}`;
  const text = `import java.sql.DriverManager;

class Ask {
    public static void main(String[] words) throws Exception {
        var url = ${literal(`jdbc:TAOS-RS://${at}/${place.database}${secure ? "?useSSL=true" : ""}`)};
        var password = System.getenv("PENSTOCK_PASSWORD");
        try (var connection = DriverManager.getConnection(url, ${literal(place.user)}, password);
                var rows = connection.createStatement().executeQuery(${literal(question(place))})) {
            while (rows.next()) System.out.println(rows.getString(1));
        }
    }
}`;
  const note = "TDengine's driver in REST mode. It takes no tokens: put your password into PENSTOCK_PASSWORD.";
  return { title: "JDBC", needs: "com.taosdata.jdbc:taos-jdbcdriver", text, note };
}
