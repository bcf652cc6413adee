// Requests to the gateway. Every one carries the header that keeps the browser's own password
// dialog away; errors come as `RequestError` with what the gateway said.
import { parseExact } from "./exact.js";

export class RequestError extends Error {
  /**
   * @param fault the gateway's `{code, message, detail?, hint?, line?, column?, snippet?}`, and the
   *   `trace` under which its log has more
   */
  constructor(fault, status) {
    super(fault.message);
    this.fault = fault;
    this.status = status;
  }
}

let whenLoggedOut = () => {};

/** Call *listener* whenever an answer says that nobody is logged in. */
export function onLoggedOut(listener) {
  whenLoggedOut = listener;
}

/** Send *body* as JSON, or GET without one; return the answer's JSON. */
export async function ask(path, body, options) {
  return parseExact(await (await send(path, body, options)).text());
}

/** Send *body* as JSON, or GET without one; return the answer, which is a good one. */
export async function send(path, body, { signal, accept } = {}) {
  const trace = newTrace();
  const headers = { "X-Requested-With": "penstock-console", "X-Trace-Id": trace };
  if (accept) headers.Accept = accept;
  const options = { headers, signal, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const answer = await reach(path, options);
  if (answer.ok) return answer;
  const fault = faultOf(await answer.text(), answer);
  // the gateway logs what is no fault of the caller's
  if (answer.status >= 500) fault.trace = trace;
  const error = new RequestError(fault, answer.status);
  if (answer.status === 401 && path !== "/v1/login") whenLoggedOut(error);
  throw error;
}

/** An id by which a request is found again in the services' logs. */
function newTrace() {
  // randomUUID is there over TLS and on the same machine only
  const random = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const hint = "is the mesh running? `penstock status` says it";
    throw new RequestError({ code: "E_UNREACHABLE", message: "the gateway does not answer", hint }, 0);
  }
}

function faultOf(text, answer) {
  try {
    const { error } = JSON.parse(text);
    if (error?.message) return error;
  } catch {
    // not JSON: a proxy answered
  }
  return { code: `HTTP ${answer.status}`, message: answer.statusText || "the request failed" };
}

/** The gateway's words for any error. */
export function faultFrom(error) {
  return error instanceof RequestError ? error.fault : { code: "", message: String(error?.message ?? error) };
}
