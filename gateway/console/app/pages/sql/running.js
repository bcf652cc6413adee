// Statements that run: one at a time in each tab, with their outcome.
import { signal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { query } from "../../core/query.js";
import { forgetSchema } from "../../core/schema.js";
import { remember } from "./history.js";

/** By the id of a tab: `{started, elapsed?, stop?, answer?, fault?}`. */
export const runs = signal({});

function put(id, run) {
  runs.value = { ...runs.value, [id]: run };
}

export async function runIn(id, text, database) {
  if (runs.value[id]?.stop || !text.trim()) return;
  const stop = new AbortController();
  const started = performance.now();
  put(id, { started, stop: () => stop.abort() });
  const outcome = await outcomeOf(text, database, stop.signal);
  const elapsed = performance.now() - started;
  put(id, { started, elapsed, ...outcome });
  const rows = outcome.answer?.rows.length;
  const words = outcome.fault ? outcome.fault.code || "failed" : `${rows} ${rows === 1 ? "row" : "rows"}`;
  announce(outcome.fault ? outcome.fault.message : `${words} in ${Math.round(elapsed)} milliseconds`);
  remember(text, database, words);
  if (!/^\s*(select|show|describe|explain)\b/i.test(text)) forgetSchema();
}

async function outcomeOf(text, database, signal) {
  try {
    return { answer: await query(text, { database, signal }) };
  } catch (error) {
    if (error.name !== "AbortError") return { fault: faultFrom(error) };
    return { fault: { code: "Cancelled", message: "the answer is not waited for any more" } };
  }
}
