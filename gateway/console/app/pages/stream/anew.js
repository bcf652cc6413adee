// The statement that made a stream, as one that takes its place. Pure.

const NAME = "(?:`(?:[^`]|``)+`|[\\p{L}_][\\p{L}\\d_]*)";
const SPACE = "(?:\\s|--[^\\n]*\\n|/\\*[^]*?\\*/)";
const CREATE = new RegExp(
  `^${SPACE}*CREATE\\s+(?:OR\\s+REPLACE\\s+)?STREAM\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?(${NAME}(?:\\.${NAME})?)`,
  "iu",
);
const HISTORY = /\s+FILL_HISTORY\s+[01](\s+ASYNC)?\b/i;

/** *sql*, which made a stream, as the statement that replaces it; null where it is none. */
export function replacingOf(sql) {
  const found = CREATE.exec(sql);
  return found && `CREATE OR REPLACE STREAM ${found[1]}${sql.slice(found[0].length)}`;
}

/** *sql*, which made a stream, as the statement that replaces it and fills its history; null where it is none. */
export function anewOf(sql) {
  const found = CREATE.exec(sql);
  if (!found) return null;
  const rest = sql.slice(found[0].length);
  // options stand before INTO and AS, and have neither names nor texts in them
  const end = rest.search(/\b(?:INTO|AS)\b/i);
  const options = rest.slice(0, end).replace(HISTORY, "");
  const later = HISTORY.exec(rest.slice(0, end))?.[1] ? " ASYNC" : "";
  return `CREATE OR REPLACE STREAM ${found[1]} FILL_HISTORY 1${later}${options}${rest.slice(end)}`;
}

/** Whether something of *sql* is hidden, such as a password: it cannot be run as it is. */
export function isHidden(sql) {
  return sql.includes("***");
}
