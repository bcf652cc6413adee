// Rows of a table as they come, over /v1/follow. After a cut they continue exactly behind the last
// message; a tab that is hidden follows nothing, and begins anew when it is seen.
import { ask } from "./http.js";

/** The newest rows of a message that are sent; the rest are only counted. */
export const MOST_AT_ONCE = 200;
const AGAIN_MS = 1000;
const SESSION_ENDED = 1008;
/** What is wrong with a place in the log, and not with the question. */
const LOST_PLACE = ["E_OFFSET_GONE", "E_RESUME_TOKEN"];

/**
 * Follow `database.table` until `stop` is called.
 * @param heard what is told: `state(word)`; `begin()` whenever rows come from now on and earlier ones
 *   are to be looked for elsewhere; `rows(rows, skipped)`; `fault(fault)`, after which nothing comes
 */
export function follow(table, heard) {
  const one = new Following(table, heard);
  one.start();
  return { stop: () => one.stop() };
}

class Following {
  #table;
  #heard;
  #socket = null;
  #timer = 0;
  #from = "latest";
  #over = false;
  #hidden = () => this.#look();

  constructor(table, heard) {
    this.#table = table;
    this.#heard = heard;
  }

  start() {
    document.addEventListener("visibilitychange", this.#hidden);
    this.#connect();
  }

  stop() {
    this.#over = true;
    document.removeEventListener("visibilitychange", this.#hidden);
    this.#leave();
  }

  #leave() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #look() {
    if (this.#over) return;
    if (document.hidden) {
      this.#from = "latest";
      this.#leave();
    } else if (this.#socket === null) this.#connect();
  }

  #connect() {
    if (this.#over || document.hidden) return;
    this.#heard.state("waiting");
    const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/v1/follow`);
    this.#socket = socket;
    socket.onopen = () => this.#subscribe();
    socket.onmessage = ({ data }) => this.#socket === socket && this.#take(JSON.parse(data));
    socket.onclose = ({ code }) => this.#socket === socket && this.#again(code);
  }

  #subscribe() {
    const asked = { action: "subscribe", id: "rows", table: this.#table, from: this.#from };
    this.#socket.send(JSON.stringify({ ...asked, limit: MOST_AT_ONCE, exact: true }));
  }

  #take(told) {
    if (told.type === "subscribed") {
      this.#heard.state("live");
      if (this.#from === "latest") this.#heard.begin();
    } else if (told.type === "rows") this.#heard.rows(told.rows, told.skipped ?? 0);
    else if (told.type === "error") return this.#refused(told);
    this.#from = told.token ?? this.#from;
  }

  #refused(told) {
    if (LOST_PLACE.includes(told.code) && this.#from !== "latest") {
      this.#from = "latest";
      this.#subscribe();
      return;
    }
    this.stop();
    this.#heard.fault(told);
  }

  #again(code) {
    this.#socket = null;
    this.#heard.state("waiting");
    // who is logged out learns it with any question
    if (code === SESSION_ENDED) ask("/v1/whoami").catch(() => {});
    this.#timer = setTimeout(() => this.#connect(), AGAIN_MS);
  }
}
