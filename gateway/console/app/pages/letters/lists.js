// Questions about dead letters and late rows.
import { objects, quoteText } from "../../core/query.js";
import { columns } from "../../core/schema.js";
import { insertOf, recalculateOf, rowsOf, tablesOf } from "./again.js";

export const MOST = 200;
const LETTERS = "information_schema.ins_dead_letters";
const LATE = "information_schema.ins_late_rows";
const ABOUT = ["topic", "partition", "offset", "reader", "stream_name", "db_name", "code", "reason", "time"];
const MORE = ["kind", "source_db", "source_table", "time_column", "to_do"];
const list = (names) => names.map((name) => "`" + name + "`").join(", ");

/** @param filters `{code, stream, from, to}`, each empty where it does not matter; stream is `database.name` */
function where({ code, stream, from, to }, time) {
  const [database, name] = stream.split(".");
  const conditions = [
    code && `code = ${quoteText(code)}`,
    stream && `db_name = ${quoteText(database)} AND stream_name = ${quoteText(name)}`,
    from && `\`${time}\` >= ${quoteText(timeOf(from))}`,
    to && `\`${time}\` <= ${quoteText(timeOf(to))}`,
  ];
  return conditions.filter(Boolean);
}

/** A time of a form as SQL has it. */
function timeOf(text) {
  return text.replace("T", " ").padEnd("2026-01-01 00:00:00".length, ":00");
}

/** The newest letters that are about no late rows; what was published twice around a crash is there once. */
export function letters(filters, signal) {
  const conditions = ["code <> 'E_LATE'", ...where(filters, "time")].join(" AND ");
  const order = "ORDER BY `time` DESC, topic, `partition`, `offset` DESC";
  return objects(`SELECT DISTINCT ${list([...ABOUT, ...MORE])} FROM ${LETTERS} WHERE ${conditions} ${order} LIMIT ${MOST}`, { signal });
}

/** How many there are of each code, stream and table, whatever is chosen now. */
export function letterCounts(signal) {
  return objects(
    `SELECT code, db_name, stream_name, count(*) AS n FROM ${LETTERS} WHERE code <> 'E_LATE'` +
      " GROUP BY code, db_name, stream_name ORDER BY code, db_name, stream_name",
    { signal },
  );
}

/** The letters about one record, with what they hold. */
export function lettersAt(topic, partition, offset, signal) {
  const place = `topic = ${quoteText(topic)} AND \`partition\` = ${Number(partition)} AND \`offset\` = ${BigInt(offset)}`;
  return objects(`SELECT DISTINCT ${list([...ABOUT, "value", ...MORE])} FROM ${LETTERS} WHERE ${place} ORDER BY \`time\``, { signal });
}

/** The newest late rows. */
export function lateRows(filters, signal) {
  const conditions = where({ ...filters, code: "" }, "arrived").join(" AND ");
  return objects(
    `SELECT stream_name, db_name, arrived, table_name, ticks, \`row\` FROM ${LATE}` +
      `${conditions && ` WHERE ${conditions}`} ORDER BY arrived DESC, ticks DESC LIMIT ${MOST}`,
    { signal },
  );
}

export function lateCounts(signal) {
  return objects(`SELECT db_name, stream_name, count(*) AS n FROM ${LATE} GROUP BY db_name, stream_name ORDER BY db_name, stream_name`, { signal });
}

/** Statements that write the rows of letters again, one for each table. */
export async function inserts(chosen) {
  const rows = new Map();
  for (const { source_db: database, value } of chosen) rows.set(database, [...(rows.get(database) ?? []), ...rowsOf(value).rows]);
  const found = await Promise.all([...rows].map(([database, mine]) => insertsInto(database, mine)));
  return found.flat();
}

async function insertsInto(database, rows) {
  const names = tablesOf(rows);
  if (names.length === 0) return [];
  const known = await objects(
    "SELECT table_name, stable_name FROM information_schema.ins_tables" +
      ` WHERE db_name = ${quoteText(database)} AND table_name IN (${names.map(quoteText).join(", ")})`,
  );
  const homes = new Map(known.map((one) => [one.table_name, one.stable_name || one.table_name]));
  const missing = names.find((name) => !homes.has(name));
  if (missing) throw new Error(`There is no table ${missing} in ${database}. Make it first, with its tags, and then send its rows again.`);
  return Promise.all(names.map(async (name) => insertOf(database, name, await columns(database, homes.get(name)), rows)));
}

/** Statements that have streams compute again what letters are about, one for each stream. */
export function recalculations(chosen) {
  return byStream(chosen, ({ kind, value, time_column: column }) =>
    // a window is computed again when one of its rows lies in the range, not its start alone
    rowsOf(value).rows.flatMap((row) => (kind === "result" ? [row._wstart, row._wend] : [row[column]])),
  );
}

/** Statements that have streams compute the windows of late rows again. */
export function recalculationsOfLate(chosen) {
  return byStream(chosen, ({ ticks }) => [ticks]);
}

function byStream(chosen, times) {
  const found = new Map();
  for (const one of chosen) {
    const key = JSON.stringify([one.db_name, one.stream_name]);
    found.set(key, [...(found.get(key) ?? []), ...times(one)]);
  }
  return [...found].map(([key, all]) => recalculateOf(...JSON.parse(key), all)).filter(Boolean);
}
