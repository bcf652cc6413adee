// Plans: what EXPLAIN says of a statement, without running it. One at a time in each tab.
import { signal } from "../../../vendor/preact.js";
import { ask, faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { query } from "../../core/query.js";
import { explanationOf } from "./again.js";

/** By the id of a tab: what `explain` puts. */
export const plans = signal({});

/** Explain the statement at *unit* of *text* in a tab, in place of the plan that it shows. */
export function explainIn(id, text, database, unit) {
  if (!text.trim()) return;
  closePlan(id);
  explain(text, { database, unit }, (state) => (plans.value = { ...plans.value, [id]: state }));
}

export function closePlan(id) {
  const { [id]: closed, ...left } = plans.value;
  closed?.stop?.();
  plans.value = left;
}

/**
 * Explain the statement at *unit* of *text*.
 *
 * @param put is given `{started, text, stop}`, and once it is known `{started, text, elapsed}` with
 *   `{statement, statements, lines}` (the statement, how many there are, and what EXPLAIN says as
 *   `[item, value]`) or with `{fault}`; never again after *stop*
 */
export async function explain(text, { database, unit }, put) {
  const stop = new AbortController();
  const begun = { started: performance.now(), text };
  put({ ...begun, stop: () => stop.abort() });
  const outcome = await outcomeOf(text, database, unit, stop.signal);
  if (stop.signal.aborted) return;
  const elapsed = performance.now() - begun.started;
  announce(outcome.fault ? outcome.fault.message : `The plan is shown, after ${Math.round(elapsed)} milliseconds`);
  put({ ...begun, ...outcome, elapsed });
}

async function outcomeOf(text, database, unit, signal) {
  try {
    const { statements } = await ask("/v1/check", { sql: text, database: database || null }, { signal });
    const found = explanationOf(text, statements, unit);
    if (found === null) throw new Error("there is no statement to explain");
    const { rows } = await query(found.asked, { database, signal });
    return { statement: found.statement, statements: statements.length, lines: rows };
  } catch (error) {
    return { fault: faultFrom(error) };
  }
}
