// Mistakes under the text, as the gateway's own parser finds them.
import { linter } from "../../../vendor/codemirror.js";
import { ask } from "../../core/http.js";
import { spanOf } from "./places.js";

const MOST_CHARACTERS = 250_000;
const WAIT_MS = 350;

/** An extension that asks /v1/check whenever the text has rested; `database()` is the selected one. */
export function checking(database) {
  return linter((view) => findMistakes(view.state.doc.toString(), database()), { delay: WAIT_MS });
}

async function findMistakes(text, database) {
  if (!text.trim() || text.length > MOST_CHARACTERS) return [];
  try {
    const { statements, mistakes } = await ask("/v1/check", { sql: text, database: database || null });
    return mistakes.map((mistake) => diagnosticOf(text, mistake, statements));
  } catch {
    // running the statement says what is wrong with the gateway
    return [];
  }
}

function diagnosticOf(text, mistake, statements) {
  const { nearest, message, hint, detail, code } = mistake;
  const { from, to } = spanOf(text, mistake, statements);
  const actions = nearest
    ? [{ name: `Write ${nearest}`, apply: (view, a, b) => view.dispatch({ changes: { from: a, to: b, insert: nearest } }) }]
    : [];
  const words = [`${code}: ${message}`, detail, hint].filter(Boolean).join("\n");
  return { from, to: Math.min(Math.max(to, from), text.length), severity: "error", message: words, actions };
}
