// Statements whose answers may be long: they come in Arrow.
import { readAnswer } from "./arrow_rows.js";
import { answerIn } from "./query.js";

const ARROW = "application/vnd.apache.arrow.stream";
const NOTICES = "Penstock-Notice";

/** Run *sql*: `{columns: [{name, type}], rows, notices}`, with rows as `ArrowRows`. */
export async function arrowQuery(sql, options) {
  const answer = await answerIn(ARROW, sql, options);
  const notices = answer.headers.get(NOTICES)?.split(", ") ?? [];
  return { ...readAnswer(new Uint8Array(await answer.arrayBuffer())), notices };
}
