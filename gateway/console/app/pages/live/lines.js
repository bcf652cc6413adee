// Rows as lines of a chart: one column over time, a line for each value of another. Pure.
import { cell } from "../../core/format.js";
import { secondsOf } from "../../core/ticks.js";

/** Lines that can be told apart. */
export const MOST_LINES = 8;

/**
 * @param rows newest first, each with what became of it in front
 * @param time, value, group: places in a row; group is -1 for one line
 * Returns names of the lines, uPlot's `data`, and how many lines are left out.
 */
export function linesOf(rows, { time, value, group }) {
  const found = new Map();
  for (const row of rows) {
    if (row[0] === "delete" || row[value] === null) continue;
    const name = group < 0 ? "" : cell(row[group]);
    if (!found.has(name)) found.set(name, new Map());
    const at = secondsOf(row[time]);
    // of two versions of a row, the newer one is first
    if (!found.get(name).has(at)) found.get(name).set(at, Number(row[value]));
  }
  const names = [...found.keys()].sort((a, b) => found.get(b).size - found.get(a).size || (a < b ? -1 : 1));
  const shown = names.slice(0, MOST_LINES).sort();
  const times = [...new Set(shown.flatMap((name) => [...found.get(name).keys()]))].sort((a, b) => a - b);
  const lines = shown.map((name) => times.map((at) => found.get(name).get(at) ?? null));
  return { names: shown, data: [times, ...lines], left: names.length - shown.length };
}
