// The order of a grid's rows by one of its columns. Pure.
import { cell } from "../core/format.js";

/** Row numbers in the order of column *at*; NULL is last in both directions. */
export function orderBy(rows, at, type, descending) {
  // rows in Arrow know the keys of a column; others are arrays of cells
  const { keys, nulls } = rows.keysOf?.(at) ?? keysOfCells(rows, at, keyFor(type));
  const places = placesWithout(nulls, rows.length);
  const sign = descending ? -1 : 1;
  places.sort((a, b) => {
    const left = keys[a];
    const right = keys[b];
    if (left < right) return -sign;
    return left > right ? sign : a - b;
  });
  const order = new Uint32Array(rows.length);
  order.set(places);
  order.set(nulls, places.length);
  return order;
}

function placesWithout(nulls, count) {
  const places = new Uint32Array(count - nulls.length);
  let skipped = 0;
  for (let place = 0; place < count; place += 1) {
    if (place === nulls[skipped]) skipped += 1;
    else places[place - skipped] = place;
  }
  return places;
}

function keysOfCells(rows, at, keyOf) {
  const nulls = [];
  const keys = rows.map((row, place) => {
    if (row[at] !== null) return keyOf(row[at]);
    nulls.push(place);
    return null;
  });
  return { keys, nulls };
}

function keyFor(type) {
  // the values of one DECIMAL column have the same number of digits behind the point
  if (type.startsWith("DECIMAL")) return (value) => BigInt(String(value).replace(".", ""));
  return (value) => (typeof value === "object" ? cell(value) : value);
}
