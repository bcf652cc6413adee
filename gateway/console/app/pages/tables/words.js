// What is said of a table's row of ins_storage. Pure.
import { bytes, count } from "../../core/format.js";

const KINDS = {
  SUPER_TABLE: "supertable",
  NORMAL_TABLE: "table",
  VIRTUAL_SUPER_TABLE: "virtual supertable",
  VIRTUAL_NORMAL_TABLE: "virtual table",
};
const UNKNOWN = "not known: the store tells nothing";

export function kindOf({ table_type: type }) {
  return KINDS[type] ?? type;
}

export function isVirtual({ table_type: type }) {
  return type.startsWith("VIRTUAL_");
}

/** How long rows stay: by the table's own KEEP, else by its database's. */
export function keepWords(own, database) {
  if (own) return `${own}, by its own KEEP; the database's is ${database ?? "not known"}`;
  return database === "forever" ? "for ever" : `${database ?? "not known"}, by the database's KEEP`;
}

/** Rows, with those that are in no file yet, and bytes, with the number of files. */
export function sizeWords({ stored_rows: rows, tail_rows: tail, stored_bytes: size, stored_files: files }) {
  if (rows === null || rows === undefined) return { rows: UNKNOWN, bytes: UNKNOWN };
  // a count may be longer than a number of JavaScript holds
  const total = BigInt(rows) + BigInt(tail);
  const waiting = BigInt(tail) > 0n ? `, ${count(tail)} of them in no file yet` : "";
  return { rows: `${count(total)}${waiting}`, bytes: `${bytes(size)} in ${count(files)} ${String(files) === "1" ? "file" : "files"}` };
}
