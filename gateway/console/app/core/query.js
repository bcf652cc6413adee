// Statements and their answers.
import { ask, send } from "./http.js";

const PARQUET = "application/vnd.apache.parquet";

/** Run *sql*: `{columns: [{name, type}], rows, notices}`. */
export async function query(sql, { database, signal, timezone } = {}) {
  const answer = await ask("/v1/query", bodyOf(sql, database, timezone), { signal });
  const columns = answer.column_meta.map(([name, type]) => ({ name, type }));
  return { columns, rows: answer.data, notices: answer.notices ?? [] };
}

/** Run *sql* and return the answer in the form *accept*, as the gateway sends it. */
export function answerIn(accept, sql, { database, signal } = {}) {
  return send("/v1/query", bodyOf(sql, database), { signal, accept });
}

/** Run *sql* and return its rows as a Parquet file. */
export async function parquet(sql, options) {
  return (await answerIn(PARQUET, sql, options)).blob();
}

function bodyOf(sql, database, timezone) {
  const body = { sql };
  if (database) body.database = database;
  if (timezone) body.timezone = timezone;
  return body;
}

/** Run *sql* and return its rows as objects by column name. */
export async function objects(sql, options) {
  const { columns, rows } = await query(sql, options);
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
}

/** A name as SQL has it. */
export function quoteName(name) {
  return "`" + String(name).replaceAll("`", "``") + "`";
}

/** `database`.`name`. */
export function quotePath(database, name) {
  return `${quoteName(database)}.${quoteName(name)}`;
}

/** Bytes, given in hex, as INSERT has them. */
export function quoteBytes(hex) {
  return quoteText(`\\x${hex}`);
}

/** A text as SQL has it. */
export function quoteText(text) {
  return "'" + String(text).replaceAll("\\", "\\\\").replaceAll("'", "''") + "'";
}
