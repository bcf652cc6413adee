// What a dead letter holds as rows, and the statements that make good what was lost. Pure.
import { parseExact } from "../../core/exact.js";
import { quoteBytes, quoteName, quotePath, quoteText } from "../../core/query.js";

const DELETE = 1;
const MERGE = 2;
const CLEAR = 3;

/** `{rows, cut}` of a letter's value: its lines as objects, and whether it was too long to be kept whole. */
export function rowsOf(value) {
  const rows = [];
  for (const line of value.split("\n").filter(Boolean)) {
    try {
      rows.push(parseExact(line));
    } catch {
      return { rows, cut: true };
    }
  }
  return { rows, cut: false };
}

/** `{columns, rows}` of kept rows, as a grid shows them. */
export function gridOf(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.map((name) => ({ name, type: rows.some((row) => isNumber(row[name])) ? "BIGINT" : "VARCHAR" }));
  return { columns, rows: rows.map((row) => names.map((name) => row[name] ?? null)) };
}

function isNumber(value) {
  return typeof value === "number" || typeof value === "bigint";
}

/** Names of the tables of kept rows that can be written again: a delete is no row. */
export function tablesOf(rows) {
  return [...new Set(rows.filter(isWritten).map(({ tbname }) => tbname))];
}

function isWritten({ tbname, _op: op }) {
  return tbname && op !== DELETE && op !== CLEAR;
}

/**
 * INSERT of the rows that are of *table*.
 * @param columns `{name, type, tag}` of the table
 */
export function insertOf(database, table, columns, rows) {
  const mine = rows.filter((row) => isWritten(row) && row.tbname === table);
  const texts = new Map();
  for (const row of mine) {
    // what a partial write leaves out is NULL in it, and keeps its value
    const given = columns.filter(({ name, tag }) => !tag && name in row && !(row._op === MERGE && row[name] === null));
    const names = given.map(({ name }) => quoteName(name)).join(", ");
    const values = `(${given.map(({ name, type }) => literal(row[name], type)).join(", ")})`;
    texts.set(names, [...(texts.get(names) ?? []), values]);
  }
  const parts = [...texts].map(([names, values]) => `${quotePath(database, table)} (${names}) VALUES ${values.join(" ")}`);
  return `INSERT INTO ${parts.join(" ")}`;
}

function literal(value, type) {
  if (value === null || value === undefined) return "NULL";
  if (/^VARBINARY/.test(type)) return quoteBytes(value);
  return typeof value === "string" ? quoteText(value) : String(value);
}

/** RECALCULATE STREAM from the first to the last of *times*, which are ticks; null without any. */
export function recalculateOf(database, stream, times) {
  const known = times.filter((time) => time !== null && time !== undefined).map(BigInt);
  if (known.length === 0) return null;
  const [low, high] = known.reduce(([least, most], time) => [time < least ? time : least, time > most ? time : most], [known[0], known[0]]);
  return `RECALCULATE STREAM ${quotePath(database, stream)} FROM ${low} TO ${high}`;
}
