// An answer in Arrow: its columns, and its rows, which stay as they came. A cell is made when it is
// looked at, so a million rows take the memory of their bytes.
import { RecordBatchReader } from "../../vendor/arrow.js";
import { keysOf, readerOf, typeOf } from "./arrow_types.js";

/** Read an Arrow stream: `{columns: [{name, type}], rows}`. */
export function readAnswer(bytes) {
  const reader = RecordBatchReader.from(bytes).open();
  const { fields } = reader.schema;
  const batches = [...reader].filter(({ numRows }) => numRows > 0);
  const columns = fields.map((field) => ({ name: field.name, type: typeOf(field) }));
  return { columns, rows: new ArrowRows(fields, columns, batches) };
}

/** As much of an array of rows as a grid and a file need. */
export class ArrowRows {
  #columns;
  /** `{start, vectors}` of each batch. */
  #batches = [];
  length = 0;

  constructor(fields, columns, batches) {
    this.#columns = fields.map(({ type }, at) => ({
      read: readerOf(type, columns[at].type),
      keys: keysOf(type, columns[at].type),
    }));
    for (const batch of batches) {
      this.#batches.push({ start: this.length, rows: batch.numRows, vectors: fields.map((_, at) => batch.getChildAt(at)) });
      this.length += batch.numRows;
    }
  }

  /** The cells of the row at a place. */
  at(place) {
    const batch = this.#batchOf(place);
    return batch && this.#row(batch, place - batch.start);
  }

  *[Symbol.iterator]() {
    for (const batch of this.#batches) {
      for (let place = 0; place < batch.rows; place += 1) yield this.#row(batch, place);
    }
  }

  slice(first, last) {
    const found = [];
    for (let place = first; place < Math.min(last, this.length); place += 1) found.push(this.at(place));
    return found;
  }

  /** What orders the rows by column *at*: a key for each place, and the places that have NULL. */
  keysOf(at) {
    const { Held, key } = this.#columns[at].keys;
    const keys = new Held(this.length);
    const nulls = [];
    for (const { start, rows, vectors } of this.#batches) {
      const vector = vectors[at];
      if (!key) keys.set(vector.data[0].values.subarray(0, rows), start);
      if (!key && vector.nullCount === 0) continue;
      for (let place = 0; place < rows; place += 1) {
        if (!vector.isValid(place)) nulls.push(start + place);
        else if (key) keys[start + place] = key(vector, place);
      }
    }
    return { keys, nulls };
  }

  #row({ vectors }, place) {
    return this.#columns.map(({ read }, at) => (vectors[at].isValid(place) ? read(vectors[at], place) : null));
  }

  #batchOf(place) {
    let low = 0;
    let high = this.#batches.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#batches[middle].start <= place) low = middle;
      else high = middle - 1;
    }
    const found = this.#batches[low];
    return found && place >= found.start && place < found.start + found.rows ? found : undefined;
  }
}
