// The rows that came while a page looks, newest first, and how many there were. Pure.
import { timeText } from "../../core/ticks.js";

/** Rows that are kept; the store has the others. */
export const MOST_KEPT = 1000;

export class Arrivals {
  /** What is shown, newest first. */
  rows = [];
  /** Rows that came but are not shown yet. */
  waiting = [];
  received = 0;
  /** Rows that were not sent, because too many came at once. */
  skipped = 0;
  /** Rows that came, and are kept no longer. */
  gone = 0;

  /** Take in *rows* in the order in which they came. */
  take(rows, skipped) {
    this.received += rows.length + skipped;
    this.skipped += skipped;
    this.waiting = this.#newest([...rows.toReversed(), ...this.waiting]);
  }

  /** Show what waits. */
  show() {
    this.rows = this.#newest([...this.waiting, ...this.rows]);
    this.waiting = [];
  }

  /** Let go what is shown: it is looked for elsewhere from now on, with all that is missing. */
  forget() {
    this.rows = [];
    this.skipped = 0;
    this.gone = 0;
  }

  #newest(rows) {
    this.gone += Math.max(rows.length - MOST_KEPT, 0);
    return rows.slice(0, MOST_KEPT);
  }
}

/** What makes a row that came into cells as a SELECT gives them, behind what became of it. */
export function cellsWith(columns, precision) {
  const readers = columns.map(({ name, type }) => [name, readerOf(type, precision)]);
  return (row) => [row.op, ...readers.map(([name, read]) => (row[name] === null || row[name] === undefined ? null : read(row[name])))];
}

function readerOf(type, precision) {
  if (type.startsWith("TIMESTAMP")) return (value) => timeText(value, precision);
  if (type.startsWith("VARBINARY")) return hexOf;
  if (type === "JSON") return (value) => JSON.parse(value);
  return (value) => value;
}

function hexOf(base64) {
  return Array.from(atob(base64), (one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}
