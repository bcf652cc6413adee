// Streams: what the catalog says of them, and what they count each second.
import { ask } from "./http.js";
import { objects } from "./query.js";

const KEPT = 60;

/**
 * Every stream: its row of ins_streams, with `database`, `name`, the counters of the last second, and
 * `notifies`: events of it go to targets.
 */
export async function streams(signal) {
  const [listed, counted] = await Promise.all([
    objects("SELECT * FROM information_schema.ins_streams ORDER BY source_db, stream_name", { signal }),
    ask("/v1/streams/counters", undefined, { signal }),
  ]);
  const counters = new Map(counted.streams.map((one) => [String(one.id), one]));
  return listed.map((row) => {
    const now = counters.get(String(row.stream_id)) ?? {};
    const names = { database: now.database ?? row.source_db, name: row.stream_name };
    return { ...row, ...now, ...names, status: row.status, notifies: row.events_waiting !== null };
  });
}

/** The last values of some numbers by name, for small charts. */
export class Recent {
  #values = new Map();

  add(name, value) {
    const held = this.#values.get(name) ?? [];
    this.#values.set(name, [...held, value ?? 0].slice(-KEPT));
  }

  of(name) {
    return this.#values.get(name) ?? [];
  }
}
