// Statements that run: one at a time in each tab, with their outcome. A SELECT from a stream alone
// follows the stream's results until it is stopped.
import { signal } from "../../../vendor/preact.js";
import { arrowQuery } from "../../core/arrow_query.js";
import { ask, faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { forgetSchema } from "../../core/schema.js";
import { findSubject, narrowed } from "../live/subject.js";
import { remember } from "./history.js";

/** What the gateway says of a name that no table has. */
const NO_TABLE = ["E_TABLE_NOT_EXIST", "E_NO_TABLE"];

/** By the id of a tab: `{started, text, database, elapsed?, stop?, answer?, subject?, fault?}`. */
export const runs = signal({});

function put(id, run) {
  runs.value = { ...runs.value, [id]: run };
}

export async function runIn(id, text, database) {
  if (runs.value[id]?.subject) runs.value[id].stop?.();
  if (runs.value[id]?.stop || !text.trim()) return;
  const stop = new AbortController();
  const run = { started: performance.now(), text, database };
  put(id, { ...run, stop: () => stop.abort() });
  const outcome = await outcomeOf(text, database, stop.signal);
  const ended = () => ({ ...run, ...outcome, elapsed: performance.now() - run.started });
  put(id, outcome.subject ? { ...run, ...outcome, stop: () => put(id, ended()) } : ended());
  const words = wordsOf(outcome);
  announce(outcome.fault ? outcome.fault.message : `${words} in ${Math.round(runs.value[id].elapsed ?? 0)} milliseconds`);
  remember(text, database, words);
  if (!/^\s*(select|show|describe|explain)\b/i.test(text)) forgetSchema();
}

function wordsOf({ fault, subject, answer }) {
  if (fault) return fault.code || "failed";
  if (subject) return "followed";
  return `${answer.rows.length} ${answer.rows.length === 1 ? "row" : "rows"}`;
}

async function outcomeOf(text, database, signal) {
  try {
    return { answer: await arrowQuery(text, { database, signal }) };
  } catch (error) {
    if (error.name === "AbortError") {
      return { fault: { code: "Cancelled", message: "the answer is not waited for any more" } };
    }
    const fault = faultFrom(error);
    return NO_TABLE.includes(fault.code) ? await followOr(fault, text, database, signal) : { fault };
  }
}

/** What a text follows that is no query, because its last FROM names a stream; else *fault*. */
async function followOr(fault, text, database, signal) {
  try {
    const { statements, mistakes } = await ask("/v1/check", { sql: text, database: database || null }, { signal });
    const { follows } = statements.at(-1);
    if (!follows || mistakes.length > 0) return { fault };
    return { subject: narrowed(await findSubject([follows.database, follows.table]), follows.columns) };
  } catch {
    return { fault };
  }
}
