// Rights as rows of a matrix: one for each user or role and object, with a place for each right. Pure.
import { quoteName, quotePath } from "../../core/query.js";

export const RIGHTS = ["READ", "WRITE", "CREATE", "ALTER", "DROP", "FUNCTION", "ADMIN"];
/** Rights that make sense on a kind of object. */
const ON = {
  all: RIGHTS,
  database: ["READ", "WRITE", "CREATE", "ALTER", "DROP"],
  table: ["READ", "WRITE", "ALTER", "DROP"],
  stream: ["READ", "ALTER", "DROP"],
  "external stream": ["READ", "WRITE", "DROP"],
  view: ["ALTER", "DROP"],
};

/** Rows `{holder, holds, kind, database, name, rights: Set}` of rows of ins_user_privileges. */
export function matrixOf(grants) {
  const rows = new Map();
  for (const grant of grants) {
    const { user_name: holder, kind: holds, object_type: kind, db_name: database, object_name: name } = grant;
    const key = [holder, kind, database, name].join("\n");
    if (!rows.has(key)) rows.set(key, { holder, holds, kind, database, name, rights: new Set() });
    const { rights } = rows.get(key);
    for (const right of grant.privilege === "ALL" ? ON[kind] ?? [] : [grant.privilege]) rights.add(right);
  }
  return [...rows.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function keyOf({ holder, kind, database, name }) {
  return [holder, kind === "all" ? 0 : 1, database, name].join("\n");
}

/** Whether *right* can be held on an object of *kind*. */
export function fits(right, kind) {
  return (ON[kind] ?? []).includes(right);
}

/** The object of a row as GRANT has it. */
export function objectOf({ kind, database, name }) {
  if (kind === "all") return "*.*";
  if (kind === "database") return `${quoteName(database)}.*`;
  const path = quotePath(database, name);
  return kind === "table" ? path : `STREAM ${path}`;
}

/** The object of a row as people read it. */
export function nameOf({ kind, database, name }) {
  if (kind === "all") return "everything";
  return kind === "database" ? `${database}.*` : `${kind} ${database}.${name}`;
}
