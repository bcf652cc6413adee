// The windows of a stream by group, open and closed, and how far each group is. Pure.

const MOST_GROUPS = 24;
/** So many closed windows of a group are kept. */
const KEPT = 60;
/** The time that is shown, in windows of the usual length. */
const SHOWN = 12;
const MOST_SHOWN = 60;
const TICKS_PER_MS = { ms: 1, us: 1e3, ns: 1e6 };
const MS = { b: 1e-6, u: 1e-3, a: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5, n: 2592e6, y: 31536e6 };

/** Milliseconds since 1970 of a time as the gateway writes it, with the fraction behind them. */
export function millis(text) {
  const finer = /\.\d{3}(\d+)/.exec(text);
  return Date.parse(text) + (finer ? Number(`0.${finer[1]}`) : 0);
}

/** Milliseconds of ticks of a database. */
export function ofTicks(ticks, precision) {
  return Number(ticks) / TICKS_PER_MS[precision];
}

/** Milliseconds of a length as SQL has it: `10s`. */
export function lengthOf(text) {
  const found = /^(\d+)([a-z])$/.exec(text ?? "");
  return found ? Number(found[1]) * MS[found[2]] : 0;
}

/** Whether a stream has windows. */
export function hasWindows(sql) {
  return /\b(INTERVAL|SESSION|STATE_WINDOW|EVENT_WINDOW|COUNT_WINDOW)\s*\(/i.test(sql);
}

/** What is known of windows, from one look to the next. */
export class Windows {
  #spans = new Map();
  #reached = new Map();

  /**
   * @param open `{group, start, end, t}` of the windows that are open and begin after *since*
   * @param results `{group, start, end}` of the newest results; *end* null where they have none
   * @param since of open windows that begin earlier nothing is known
   */
  take(open, results, since = -Infinity) {
    const now = new Set(open.map(keyOf));
    for (const [key, span] of this.#spans) {
      if (!span.open || now.has(key)) continue;
      if (span.start > since) span.open = false;
      else this.#spans.delete(key);
    }
    for (const { group, start, end, t } of open) {
      this.#spans.set(keyOf({ group, start }), { group, start, end, open: true });
      this.#reached.set(group, t);
    }
    for (const one of results) {
      const key = keyOf(one);
      if (now.has(key)) continue;
      const known = this.#spans.get(key);
      this.#spans.set(key, { ...one, end: one.end ?? known?.end ?? null, open: false });
    }
    this.#forget();
  }

  /** `{lanes: [{group, spans, t}], groups, from, to}`: the groups with the newest windows, by name. */
  view() {
    const byGroup = Map.groupBy(this.#spans.values(), ({ group }) => group);
    const length = usualLength([...this.#spans.values()]);
    const lanes = [...byGroup].map(([group, spans]) => {
      const drawn = spans.map((span) => ({ ...span, end: span.end ?? span.start + (length.same ? length.usual : 0) }));
      return { group, spans: drawn.sort((a, b) => a.start - b.start), t: this.#reached.get(group) ?? null };
    });
    const newest = ({ spans }) => spans.at(-1).start;
    const shown = lanes.sort((a, b) => newest(b) - newest(a)).slice(0, MOST_GROUPS);
    shown.sort((a, b) => (a.group < b.group ? -1 : 1));
    return { lanes: shown, groups: lanes.length, ...stretchOf(shown, length.usual) };
  }

  #forget() {
    for (const spans of Map.groupBy(this.#spans, ([, { group }]) => group).values()) {
      const closed = spans.filter(([, { open }]) => !open).sort(([, a], [, b]) => b.start - a.start);
      for (const [key] of closed.slice(KEPT)) this.#spans.delete(key);
    }
  }
}

/** Where *time* is between *from* and *to*, in percent. */
export function placeOf(time, { from, to }) {
  return Math.max(0, Math.min(100, ((time - from) / (to - from)) * 100));
}

function keyOf({ group, start }) {
  return `${start} ${group}`;
}

/** The middle one of the lengths, and whether all are of it. */
function usualLength(spans) {
  const lengths = spans.filter(({ end }) => end !== null).map(({ start, end }) => end - start);
  if (lengths.length === 0) return { usual: 0, same: false };
  lengths.sort((a, b) => a - b);
  return { usual: lengths[lengths.length >> 1], same: lengths[0] === lengths.at(-1) };
}

function stretchOf(lanes, usual) {
  const spans = lanes.flatMap((lane) => lane.spans);
  if (spans.length === 0) return { from: 0, to: 1 };
  const times = [...spans.map(({ end }) => end), ...lanes.map(({ t }) => t ?? -Infinity)];
  const to = Math.max(...times);
  const earliest = Math.min(...spans.map(({ start }) => start));
  if (usual === 0) return { from: Math.min(earliest, to - 1), to };
  const open = spans.filter((span) => span.open).map(({ start }) => start);
  const wanted = Math.max(Math.min(to - SHOWN * usual, ...open), to - MOST_SHOWN * usual);
  const from = Math.max(wanted, earliest - usual / 4);
  return { from, to: to + usual / 4 };
}
