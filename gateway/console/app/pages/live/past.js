// The rows that a table has had: as many as there are, of which only those are asked for that are
// looked at. Where they are is known from counts by time, so no page lies behind an OFFSET of all
// that is before it.
import { faultFrom } from "../../core/http.js";
import { objects, query, quoteName, quoteText } from "../../core/query.js";
import { UNITS, perSecond } from "../../core/ticks.js";
import { Stretches, joined, pageKey } from "./stretches.js";

const PAGE_ROWS = 200;
const PAGES_KEPT = 50;
/** Rows of a stretch; one with more is divided when it is looked at. */
const MOST_ROWS = 5000;
const STRETCHES = 2000;
/** The shortest INTERVAL is 10 ms. */
const LEAST_IN_SECOND = 100n;
/** The scroll bar may fly over a million rows: only where it rests, rows are asked for. */
const REST_MS = 80;

export class Past {
  #subject;
  #changed;
  #stretches = new Stretches([]);
  #pages = new Map();
  #newest = [];
  #timer = 0;
  #stop = new AbortController();
  #seen = [0, 0];
  #asking = false;

  /** @param changed is called when there are other rows, or with a fault */
  constructor(subject, changed) {
    this.#subject = subject;
    this.#changed = changed;
  }

  get total() {
    return this.#stretches.total;
  }

  /** Count the rows. */
  async open() {
    const { path, time } = this.#subject;
    const name = quoteName(time);
    await this.#try(async () => {
      const [found] = await this.#objects(`SELECT count(*) AS n, max(${name}) - min(${name}) AS span FROM ${path}`);
      const rows = Number(found.n);
      if (rows <= MOST_ROWS) this.#stretches = new Stretches(rows > 0 ? [{ from: null, to: null, rows }] : []);
      else this.#stretches = new Stretches(joined(await this.#divide({ from: null, to: null, span: BigInt(found.span) }, STRETCHES), MOST_ROWS));
      this.#changed();
      await this.#load();
    });
  }

  close() {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  /** The row at a place, if it is here. */
  rowAt(place) {
    const found = this.#stretches.find(place);
    if (!found) return undefined;
    const at = found.offset % PAGE_ROWS;
    return this.#pages.get(pageKey(found.stretch, found.offset - at))?.[at];
  }

  /** The newest rows, once they are here. */
  newest() {
    const found = this.#stretches.find(0);
    this.#newest = (found && this.#pages.get(pageKey(found.stretch, 0))) ?? this.#newest;
    return this.#newest;
  }

  /** Say which places are looked at, from *first* to *last* (exclusive). */
  look(first, last) {
    this.#seen = [first, last];
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#try(() => this.#load()), REST_MS);
  }

  async #load() {
    if (this.#asking) return;
    this.#asking = true;
    try {
      for (let page = this.#missing(); page; page = this.#missing()) {
        if (page.stretch.rows > MOST_ROWS && !page.stretch.whole) await this.#refine(page.stretch);
        else this.#keep(page.key, await this.#ask(page));
        this.#changed();
      }
    } finally {
      this.#asking = false;
    }
  }

  /** The first page of those looked at now that is not here. */
  #missing() {
    const [first, last] = this.#seen;
    return this.#stretches.pages(first, Math.max(last, 1), PAGE_ROWS).find(({ key }) => !this.#pages.has(key));
  }

  #keep(key, rows) {
    this.#pages.set(key, rows);
    if (this.#pages.size > PAGES_KEPT) this.#pages.delete(this.#pages.keys().next().value);
  }

  async #ask({ stretch, offset, rows }) {
    const { path, columns, order } = this.#subject;
    const names = columns.map(({ name }, at) => (at === 0 && name === "tbname" ? name : quoteName(name)));
    const text =
      `SELECT ${names.join(", ")} FROM ${path}${this.#within(stretch)} ORDER BY ${order} LIMIT ${rows}` +
      (offset > 0 ? ` OFFSET ${offset}` : "");
    const answer = await query(text, { signal: this.#stop.signal });
    return answer.rows.map((row) => ["", ...row]);
  }

  async #refine(stretch) {
    const finer = await this.#divide(stretch, Math.min(Math.ceil((2 * stretch.rows) / MOST_ROWS), STRETCHES));
    // rows of one moment, or of fewer than 10 ms, are not divided further
    const made = finer.length > 1 ? joined(finer, MOST_ROWS) : [{ ...stretch, whole: true }];
    this.#stretches.replace(stretch, made);
  }

  /** Count the rows of a stretch in about *parts* parts, newest first. */
  async #divide({ from, to, span }, parts) {
    const { path, precision } = this.#subject;
    const least = perSecond(precision) / LEAST_IN_SECOND;
    const even = span / BigInt(parts) + 1n;
    const width = even > least ? even : least;
    const found = await this.#objects(
      `SELECT _wstart, _wend, count(*) AS n FROM ${path}${this.#within({ from, to })} INTERVAL(${width}${UNITS[precision]})`,
    );
    const made = found.map(({ _wstart, _wend, n }) => ({
      from: from !== null && _wstart < from ? from : _wstart,
      to: to !== null && _wend > to ? to : _wend,
      rows: Number(n),
      span: width,
      whole: width === least,
    }));
    return made.sort((a, b) => (a.from < b.from ? 1 : -1));
  }

  #within({ from, to }) {
    const time = quoteName(this.#subject.time);
    const bounds = [from !== null && `${time} >= ${quoteText(from)}`, to !== null && `${time} < ${quoteText(to)}`].filter(Boolean);
    return bounds.length > 0 ? ` WHERE ${bounds.join(" AND ")}` : "";
  }

  #objects(sql) {
    return objects(sql, { signal: this.#stop.signal });
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#changed(faultFrom(error));
    }
  }
}
