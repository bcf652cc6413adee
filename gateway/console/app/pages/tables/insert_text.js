// The INSERT of one row that a form holds, and the field that an error is about. Pure.
import { quoteBytes, quoteName, quotePath, quoteText } from "../../core/query.js";

const TEXTS = ["VARCHAR", "NCHAR", "JSON"];
const NUMBER = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/;
const TICKS = /^[+-]?\d+$/;
const RELATIVE = /^(now|today)(\s*[+-]\s*\d+[a-z])*$/i;
const BOOLEAN = /^(true|false)$/i;
const PLACE = /\b(?:column|tag) "([^"]+)"/;
/** Names that stand for the child table in errors. */
const CHILD = "tbname";
/** Time and number of a stream's rows, which come by themselves. */
const STAMPS = ["_tp_time", "_tp_sn"];

/** The type of a column without its length. */
export function kindOfType(type) {
  return type.split("(")[0];
}

export function isText(type) {
  return TEXTS.includes(kindOfType(type));
}

/** Of *columns* those that somebody writes; `needed` is the time of the row, which cannot be NULL. */
export function writtenOf(columns) {
  const stamped = STAMPS.every((name, at) => columns[at]?.name === name);
  if (stamped) return columns.slice(STAMPS.length).map((column) => ({ ...column, needed: false }));
  return columns.map((column, at) => ({ ...column, needed: at === 0 }));
}

/** What fields hold at first: the time is now, and all else is NULL. */
export function emptyFields(columns) {
  return Object.fromEntries(
    columns.map(({ name, needed }) => [name, needed ? { text: "NOW", none: false } : { text: "", none: true }]),
  );
}

/**
 * A value as INSERT has it. What is none of its type goes in quotes, so that the gateway can say it.
 * @param field `{text, none}`; none is NULL
 */
export function literalOf({ text, none }, type) {
  if (none) return "NULL";
  const kind = kindOfType(type);
  if (isText(type)) return quoteText(text);
  const bare = text.trim();
  if (kind === "VARBINARY") return quoteBytes(bare);
  if (kind === "TIMESTAMP") return TICKS.test(bare) || RELATIVE.test(bare) ? bare : quoteText(bare);
  if (kind === "BOOL") return BOOLEAN.test(bare) ? bare : quoteText(bare);
  return NUMBER.test(bare) ? bare : quoteText(bare);
}

/**
 * INSERT of one row.
 * @param target `{database, home, child, isNew}`: the supertable or table, the child table if it is
 *   one's row, and whether the child has to be made
 * @param fields `{text, none}` by the column's name
 */
export function insertOf({ database, home, child, isNew }, columns, fields) {
  const values = listOf(columns.filter(({ tag }) => !tag), fields);
  const path = quotePath(database, child ?? home);
  if (!isNew) return `INSERT INTO ${path} (${values.names}) VALUES (${values.literals})`;
  const tags = listOf(columns.filter(({ tag }) => tag), fields);
  const using = `USING ${quotePath(database, home)} (${tags.names}) TAGS (${tags.literals})`;
  return `INSERT INTO ${path} ${using} (${values.names}) VALUES (${values.literals})`;
}

function listOf(columns, fields) {
  return {
    names: columns.map(({ name }) => quoteName(name)).join(", "),
    literals: columns.map(({ name, type }) => literalOf(fields[name], type)).join(", "),
  };
}

/** The name of the column that an error is about, `tbname` of the child table; undefined: none. */
export function placeOf({ message, detail = "" }, columns) {
  const found = PLACE.exec(`${message} ${detail}`)?.[1];
  return found === CHILD || columns.some(({ name }) => name === found) ? found : undefined;
}
