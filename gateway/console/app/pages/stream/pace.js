// How fast a percentage grows, from what was seen of it. Pure.

export class Pace {
  #first = null;
  #last = null;

  /** Note *percent* at *time*, in seconds. One that falls begins anew. */
  add(percent, time) {
    if (!this.#last || percent < this.#last.percent) this.#first = this.#last = { percent, time };
    else if (percent > this.#last.percent) this.#last = { percent, time };
  }

  /** Seconds until 100 from *now* on; null until it has grown. */
  left(now) {
    const grown = this.#last ? this.#last.percent - this.#first.percent : 0;
    if (grown === 0) return null;
    const each = (this.#last.time - this.#first.time) / grown;
    return Math.max((100 - this.#last.percent) * each - (now - this.#last.time), 0);
  }
}
