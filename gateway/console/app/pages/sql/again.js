// The part of a text that may run once more, because it only reads. Pure.
import { unitAt } from "./places.js";

const READS = /^(SELECT|SHOW|DESCRIBE|EXPLAIN)\b/;

/**
 * The last statement of *text*, with each USE before it; null when it does more than read.
 * @param statements of the text, as /v1/check tells them
 */
export function readingAgain(text, statements) {
  const last = statements.at(-1);
  if (!last || !READS.test(last.kind)) return null;
  const wanted = statements.filter((one) => one === last || one.kind === "USE");
  return wanted.map(({ start, end }) => text.slice(unitAt(text, start), unitAt(text, end))).join(";\n");
}
