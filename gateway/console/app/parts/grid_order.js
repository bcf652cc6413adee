// The order of a grid's rows by one of its columns. Pure.
import { cell } from "../core/format.js";

/** Row numbers in the order of column *at*; NULL is last in both directions. */
export function orderBy(rows, at, type, descending) {
  const keyOf = keyFor(type);
  const keys = rows.map((row) => (row[at] === null ? null : keyOf(row[at])));
  const order = Uint32Array.from(rows, (_, place) => place);
  const sign = descending ? -1 : 1;
  return order.sort((a, b) => {
    const left = keys[a];
    const right = keys[b];
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    if (left === right) return a - b;
    return left < right ? -sign : sign;
  });
}

function keyFor(type) {
  // the values of one DECIMAL column have the same number of digits behind the point
  if (type.startsWith("DECIMAL")) return (value) => BigInt(String(value).replace(".", ""));
  return (value) => (typeof value === "object" ? cell(value) : value);
}
