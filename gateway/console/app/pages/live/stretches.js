// Where a row of a long table is: stretches of time, newest first, with how many rows each has. Pure.

/** Join neighbours while they have at most *most* rows together. */
export function joined(stretches, most) {
  const made = [];
  for (const one of stretches) {
    const newer = made.at(-1);
    if (newer && newer.rows + one.rows <= most) made[made.length - 1] = { from: one.from, to: newer.to, rows: newer.rows + one.rows };
    else made.push(one);
  }
  return made;
}

export class Stretches {
  #list = [];
  /** Place of the first row of each. */
  #starts = [];
  total = 0;

  /** @param list `{from, to, rows}` of each, newest first; null is no bound */
  constructor(list) {
    this.#set(list);
  }

  #set(list) {
    let place = 0;
    this.#list = list;
    this.#starts = list.map(({ rows }) => {
      const start = place;
      place += rows;
      return start;
    });
    this.total = place;
  }

  /** The stretch that holds a place, and how many of its rows are before it; null beyond the end. */
  find(place) {
    if (place < 0 || place >= this.total) return null;
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return { stretch: this.#list[low], offset: place - this.#starts[low] };
  }

  /** Put finer ones in the place of a stretch. */
  replace(stretch, finer) {
    this.#set(this.#list.flatMap((one) => (one === stretch ? finer : [one])));
  }

  /** The pages of *size* rows that hold the places from *first* to *last* (exclusive). */
  pages(first, last, size) {
    const found = [];
    let place = Math.max(first, 0);
    while (place < Math.min(last, this.total)) {
      const { stretch, offset } = this.find(place);
      const at = offset - (offset % size);
      found.push({ key: pageKey(stretch, at), stretch, offset: at, rows: Math.min(size, stretch.rows - at) });
      place += Math.min(at + size, stretch.rows) - offset;
    }
    return found;
  }
}

export function pageKey(stretch, offset) {
  return `${stretch.from} ${offset}`;
}
