// Values as people read them, and as files hold them.

const LINES_AT_ONCE = 10_000;
const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** A count: 1,234,567. */
export function count(value) {
  return value === null || value === undefined ? "–" : GROUPED.format(value);
}

/** A rate: 12.5/s. */
export function rate(value) {
  return value === null || value === undefined ? "–" : `${SHORT.format(value)}/s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = Number(value);
  let at = 0;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${SHORT.format(size)} ${units[at]}`;
}

/** Seconds: 4.2 s, 3 min, 5 h, 2 d. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${SHORT.format(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** One cell of a result. */
export function cell(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value, exactNumbers) : String(value);
}

/** Whole numbers of any length inside a JSON value. */
function exactNumbers(_, value) {
  return typeof value === "bigint" ? JSON.rawJSON?.(String(value)) ?? String(value) : value;
}

/** Parts of a CSV file as RFC 4180 has it; NULL is an empty field, an empty text is "". */
export function* csv(columns, rows) {
  let lines = [columns.map(({ name }) => csvField(name)).join(",")];
  for (const row of rows) {
    lines.push(row.map(csvField).join(","));
    if (lines.length >= LINES_AT_ONCE) {
      yield lines.join("\r\n") + "\r\n";
      lines = [];
    }
  }
  if (lines.length > 0) yield lines.join("\r\n") + "\r\n";
}

function csvField(value) {
  if (value === null || value === undefined) return "";
  const text = cell(value);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines of cells between tabs, as spreadsheets take them from the clipboard. */
export function tabbed(columns, rows) {
  const clean = (value) => cell(value).replace(/[\t\r\n]+/g, " ");
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(clean).join("\t")).join("\n");
}
