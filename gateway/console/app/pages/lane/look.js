// What the lane asks: the windows that the stream's processors hold, the newest results, late rows.
import { objects, quoteName, quotePath, quoteText } from "../../core/query.js";
import { columns, precisionOf } from "../../core/schema.js";
import { lengthOf, millis, ofTicks } from "./model.js";

const MOST_OPEN = 1000;
const MOST_RESULTS = 300;
const MOST_LATE = 100;

/** `{open, results, since, late, watermark}`, as `Windows.take` wants them; times in milliseconds. */
export async function lookAt(stream, signal) {
  const listed = stream.target_table ? await columns(stream.target_db, stream.target_table) : [];
  const tags = listed.filter(({ name, tag }) => tag && name !== "group_id").map(({ name }) => name);
  const [open, results, late] = await Promise.all([
    openWindows(stream, tags, signal),
    listed.length > 0 ? newestResults(stream, listed, tags, signal) : [],
    lateRows(stream, signal),
  ]);
  const since = open.length < MOST_OPEN ? -Infinity : open.at(-1).start;
  return { open, results, since, late, watermark: lengthOf(stream.watermark) };
}

async function openWindows(stream, tags, signal) {
  const named = ["tbname", ...tags.map(quoteName), "_window_start", "_window_end", "_window_t"].join(", ");
  const rows = await objects(
    `SELECT ${named} FROM ${quotePath(stream.database, stream.name)} OPEN WINDOWS ORDER BY _window_start DESC LIMIT ${MOST_OPEN}`,
    { signal },
  );
  // processors of the former version say no more than the results
  return rows.filter((row) => row._window_start !== null).map((row) => ({
    group: groupOf(row, tags),
    start: millis(row._window_start),
    end: millis(row._window_end),
    t: millis(row._window_t),
  }));
}

/** The newest rows of the result table: their first column is where their window begins. */
async function newestResults(stream, listed, tags, signal) {
  const start = listed[0].name;
  const end = listed.find(({ name }) => name === "_wend")?.name;
  const named = ["tbname", ...[...tags, start, end].filter(Boolean).map(quoteName)].join(", ");
  const table = quotePath(stream.target_db, stream.target_table);
  const rows = await objects(
    `SELECT ${named} FROM ${table} ORDER BY ${quoteName(start)} DESC LIMIT ${MOST_RESULTS}`,
    { signal },
  );
  return rows.map((row) => ({
    group: groupOf(row, tags),
    start: millis(row[start]),
    end: end && row[end] !== null ? millis(row[end]) : null,
  }));
}

async function lateRows(stream, signal) {
  const where = `WHERE stream_name = ${quoteText(stream.name)} AND db_name = ${quoteText(stream.database)}`;
  const [rows, precision] = await Promise.all([
    objects(
      `SELECT ticks FROM information_schema.ins_late_rows ${where} AND ticks IS NOT NULL ORDER BY arrived DESC LIMIT ${MOST_LATE}`,
      { signal },
    ),
    precisionOf(stream.source_db),
  ]);
  return precision ? rows.map(({ ticks }) => ofTicks(ticks, precision)) : [];
}

/** What a group is called: by the tags of its results, or by their child table. */
function groupOf(row, tags) {
  const named = tags.filter((tag) => row[tag] !== null).map((tag) => String(row[tag]));
  return named.length > 0 ? named.join(" · ") : row.tbname;
}
