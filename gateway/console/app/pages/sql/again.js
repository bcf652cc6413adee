// Statements of a text that are asked apart from it: what only reads once more, or one's EXPLAIN. Pure.
import { statementAt, unitAt } from "./places.js";

const READS = /^(SELECT|SHOW|DESCRIBE|EXPLAIN)\b/;

/**
 * The last statement of *text*, with each USE before it; null when it does more than read.
 * @param statements of the text, as /v1/check tells them
 */
export function readingAgain(text, statements) {
  const last = statements.at(-1);
  if (!last || !READS.test(last.kind)) return null;
  return [...usesBefore(text, statements, last), wordsOf(text, last)].join(";\n");
}

/**
 * What explains the statement at *unit* of *text*: `{statement, asked}`, where *asked* has each USE
 * before it; null when the text has no statement.
 */
export function explanationOf(text, statements, unit) {
  const one = statementAt(text, statements, unit);
  if (!one) return null;
  const statement = wordsOf(text, one);
  const explain = one.kind === "EXPLAIN" ? statement : `EXPLAIN ${statement}`;
  return { statement, asked: [...usesBefore(text, statements, one), explain].join(";\n") };
}

function usesBefore(text, statements, one) {
  const uses = statements.filter(({ kind, start }) => kind === "USE" && start < one.start);
  return uses.map((use) => wordsOf(text, use));
}

function wordsOf(text, { start, end }) {
  return text.slice(unitAt(text, start), unitAt(text, end));
}
