// What there is: databases, tables and columns, asked for when they are first needed.
import { objects, quoteText } from "./query.js";

const held = new Map();

/** Ask once; `forget` makes the next call ask again. A question that failed is asked again. */
function once(key, question) {
  if (!held.has(key)) {
    const answer = question();
    held.set(key, answer);
    answer.catch(() => held.delete(key));
  }
  return held.get(key);
}

export function forgetSchema() {
  held.clear();
}

export function databases() {
  return once("databases", async () => {
    const found = await objects("SELECT name FROM information_schema.ins_databases ORDER BY name");
    return found.map(({ name }) => name);
  });
}

/** `ms`, `us` or `ns`; undefined where there is no such database. */
export function precisionOf(database) {
  return once(`precision ${database}`, async () => {
    const where = `WHERE name = ${quoteText(database)}`;
    const found = await objects(`SELECT \`precision\` FROM information_schema.ins_databases ${where}`);
    return found[0]?.precision;
  });
}

/** `{name, kind: "supertable" | "table", virtual}` of a database, in the order of names. */
export function tables(database) {
  return once(`tables ${database}`, () => readTables(database));
}

async function readTables(database) {
  const where = `WHERE db_name = ${quoteText(database)}`;
  const plain = (type) =>
    objects(`SELECT table_name FROM information_schema.ins_tables ${where} AND \`type\` = '${type}'`);
  const [stables, normal, virtual, system] = await Promise.all([
    objects(`SELECT stable_name FROM information_schema.ins_stables ${where}`),
    plain("NORMAL_TABLE"),
    plain("VIRTUAL_NORMAL_TABLE"),
    plain("SYSTEM_TABLE"),
  ]);
  const found = [
    ...stables.map((row) => ({ name: row.stable_name, kind: "supertable" })),
    ...[...normal, ...system].map((row) => ({ name: row.table_name, kind: "table" })),
    ...virtual.map((row) => ({ name: row.table_name, kind: "virtual table" })),
  ];
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `{name, type, tag}` of a table. */
export function columns(database, table) {
  return once(`columns ${database} ${table}`, () => readColumns(database, table));
}

async function readColumns(database, table) {
  const found = await objects(
    "SELECT col_name, col_type, note FROM information_schema.ins_columns" +
      ` WHERE db_name = ${quoteText(database)} AND table_name = ${quoteText(table)}`,
  );
  return found.map((row) => ({ name: row.col_name, type: row.col_type, tag: row.note === "TAG" }));
}

/** Names of child tables, *most* at a time, behind the name *after*. */
export async function children(database, stable, after = "", most = 100) {
  const found = await objects(
    "SELECT table_name FROM information_schema.ins_tables" +
      ` WHERE db_name = ${quoteText(database)} AND stable_name = ${quoteText(stable)}` +
      ` AND table_name > ${quoteText(after)} ORDER BY table_name LIMIT ${most}`,
  );
  return found.map(({ table_name }) => table_name);
}
