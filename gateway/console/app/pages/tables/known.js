// What the catalog and the store know of one table.
import { objects, quoteText } from "../../core/query.js";

/**
 * Facts of a table: its database's row of ins_databases as `database`, its own of ins_storage as
 * `storage`, which is its supertable's where it is a child, and the child's `tags`. Null: there is no
 * such table, or the user may not see it.
 */
export async function factsOf(database, table, signal) {
  const [home, storage] = await Promise.all([
    first(`SELECT * FROM information_schema.ins_databases WHERE name = ${quoteText(database)}`, signal),
    storageOf(database, table, signal),
  ]);
  if (storage) return { database: home, storage, child: false, tags: [] };
  const child = await first(
    `SELECT stable_name FROM information_schema.ins_tables WHERE ${isTable(database, table)}`,
    signal,
  );
  if (!child?.stable_name) return null;
  const [parent, tags] = await Promise.all([
    storageOf(database, child.stable_name, signal),
    tagsOf(database, child.stable_name, table, signal),
  ]);
  return parent && { database: home, storage: parent, child: true, tags };
}

export function storageOf(database, table, signal) {
  return first(`SELECT * FROM information_schema.ins_storage WHERE ${isTable(database, table)}`, signal);
}

/** `{tag_name, tag_value}` of a child table; none where there is no such child. */
export function tagsOf(database, stable, child, signal) {
  return objects(
    `SELECT tag_name, tag_value FROM information_schema.ins_tags WHERE ${isTable(database, child)}` +
      ` AND stable_name = ${quoteText(stable)}`,
    { signal },
  );
}

function isTable(database, table) {
  return `db_name = ${quoteText(database)} AND table_name = ${quoteText(table)}`;
}

async function first(sql, signal) {
  return (await objects(sql, { signal }))[0] ?? null;
}
