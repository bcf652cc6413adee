// What is followed: a table, the result of a stream, or what a `pq://` URI names.
import { RequestError } from "../../core/http.js";
import { objects, quoteName, quotePath, quoteText } from "../../core/query.js";

const SCOPE = "/scope/";

/** The parts of `pq://query/scope/table`. Throws what `faultFrom` reads. */
export function readUri(text) {
  const rest = text.slice("pq://".length);
  if (!text.startsWith("pq://") || rest.includes("?") || rest.includes("#")) {
    throw fault("E_URI", `this page cannot follow ${text}`, "write pq://query/scope/table; dh:// is for Python");
  }
  const at = rest.indexOf(SCOPE);
  const table = at < 0 ? "" : decodeURIComponent(rest.slice(at + SCOPE.length));
  const authority = at < 0 ? "" : rest.slice(0, at);
  if (!authority || !table) throw fault("E_URI", `${text} names no table`, "write pq://query/scope/table");
  const query = decodeURIComponent(authority.replace(/^name:/, ""));
  return { query, serial: /^\d+$/.test(authority), table };
}

/** The parts of an address of this page, of what somebody wrote: `database.name`, or a URI. */
export function partsOf(text) {
  const written = text.trim().replaceAll("`", "");
  if (written.includes("://")) return [written];
  const at = written.lastIndexOf(".");
  return at < 0 ? [written] : [written.slice(0, at), written.slice(at + 1)];
}

/**
 * Find what *parts* of an address mean.
 * Returns `{database, table, path, columns, time, order, precision, groups, numbers}`.
 */
export async function findSubject(parts) {
  if (parts.length === 2) return describe(await find(parts[0], parts[1]));
  if (!parts[0].includes("://")) throw fault("E_TABLE_NOT_EXIST", `there is no table ${parts[0]}`, "write database.table");
  return describe(await findByUri(parts[0]));
}

async function find(database, name) {
  const made = await streamsWhere(`lower(source_db) = ${lower(database)} AND lower(stream_name) = ${lower(name)}`);
  if (made.length === 0) return { database, table: name };
  // a table of that name comes first, as it does in SQL
  const same = await objects(
    `SELECT table_name FROM information_schema.ins_columns WHERE db_name = ${quoteText(database)} AND table_name = ${quoteText(name)} LIMIT 1`,
  );
  return same.length > 0 ? { database, table: name } : resultOf(made[0]);
}

async function findByUri(text) {
  const { query, serial, table } = readUri(text);
  if (!serial) {
    const [database] = await objects(`SELECT name FROM information_schema.ins_databases WHERE lower(name) = ${lower(query)}`);
    if (database) return tableOf(database.name, table);
  }
  const named = serial ? `stream_id = ${query}` : namedBy("stream_name", "source_db", query);
  const [stream] = await streamsWhere(named);
  const found = stream ? resultOf(stream) : serial ? null : await viewTarget(query);
  if (!found) throw fault("E_NO_QUERY", `there is no query ${query}`, "a stream, a view or a database; a serial is a stream's");
  const names = [found.table, `${found.database}.${found.table}`, stream?.stream_name ?? found.name];
  if (names.some((one) => one?.toLowerCase() === table.toLowerCase())) return found;
  throw fault("E_NO_TABLE", `there is no table ${table} in the scope of ${query}`, `there is ${found.table}`);
}

/** A table in the scope of a database, which may stand before its name. */
function tableOf(database, name) {
  const [home, plain] = partsOf(name);
  return { database, table: plain && home.toLowerCase() === database.toLowerCase() ? plain : name };
}

function streamsWhere(condition) {
  return objects(
    "SELECT stream_name, target_db, target_table FROM information_schema.ins_streams" +
      ` WHERE ${condition} LIMIT 1`,
  );
}

async function viewTarget(query) {
  const [view] = await objects(
    `SELECT view_name, target FROM information_schema.ins_views WHERE ${namedBy("view_name", "db_name", query)} LIMIT 1`,
  );
  if (!view) return null;
  const [database, table] = partsOf(view.target);
  return { database, table, name: view.view_name };
}

function namedBy(name, home, text) {
  return `(lower(${name}) = ${lower(text)} OR lower(concat(${home}, '.', ${name})) = ${lower(text)})`;
}

function resultOf(stream) {
  if (stream.target_table) return { database: stream.target_db, table: stream.target_table };
  throw fault("E_TABLE_NOT_EXIST", `stream ${stream.stream_name} has no result table`, "its results are notifications only");
}

async function describe({ database, table }) {
  const path = quotePath(database, table);
  const [fields, homes, supers] = await Promise.all([
    objects(`DESCRIBE ${path}`),
    objects(`SELECT \`precision\` FROM information_schema.ins_databases WHERE lower(name) = ${lower(database)}`),
    objects(
      "SELECT stable_name FROM information_schema.ins_stables" +
        ` WHERE lower(db_name) = ${lower(database)} AND lower(stable_name) = ${lower(table)}`,
    ),
  ]);
  return subjectOf({ database, table, path, fields, precision: homes[0]?.precision ?? "ms", whole: supers.length > 0 });
}

/** @param whole is true for a supertable, whose rows are those of all its child tables */
export function subjectOf({ database, table, path, fields, precision, whole }) {
  const own = fields.filter(({ note }) => whole || note !== "TAG").map(({ field, type, note }) => ({ name: field, type, note }));
  const columns = whole ? [{ name: "tbname", type: "VARCHAR", note: "" }, ...own] : own;
  const time = own[0].name;
  const key = own.find(({ note }) => note === "COMPOSITE KEY");
  const order = [`${quoteName(time)} DESC`, whole && "tbname", key && quoteName(key.name)].filter(Boolean);
  return {
    database,
    table,
    path,
    precision,
    columns,
    time,
    order: order.join(", "),
    numbers: own.slice(1).filter(({ type, note }) => note !== "TAG" && /INT|FLOAT|DOUBLE|DECIMAL/.test(type)).map(({ name }) => name),
    groups: columns.filter(({ type, note }) => note === "TAG" || /CHAR|BOOL/.test(type)).map(({ name }) => name),
  };
}

/** *subject* with some of its columns, in the order of their *names*. */
export function narrowed(subject, names) {
  const among = (list) => list.filter((name) => names.includes(name));
  const columns = names.map((name) => subject.columns.find((column) => column.name === name)).filter(Boolean);
  // a chart is over time
  const numbers = names.includes(subject.time) ? among(subject.numbers) : [];
  return { ...subject, columns, numbers, groups: among(subject.groups) };
}

function lower(text) {
  return quoteText(text.toLowerCase());
}

function fault(code, message, hint) {
  return new RequestError({ code, message, hint }, 0);
}
