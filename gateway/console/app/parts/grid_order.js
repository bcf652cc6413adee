// The order of a grid's rows by one of its columns. Pure.
import { cell } from "../core/format.js";

const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;
const SIGN = 0x8000_0000;

/** Row numbers in the order of column *at*; NULL is last in both directions. */
export function orderBy(rows, at, type, descending) {
  // rows in Arrow know the keys of a column; others are arrays of cells
  const { keys, nulls } = rows.keysOf?.(at) ?? keysOfCells(rows, at, keyFor(type));
  const words = wordsOf(ArrayBuffer.isView(keys) ? keys : ranksOf(keys, nulls), descending);
  const places = sortedBy(words, placesWithout(nulls, rows.length));
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

/** Numbers in the order of keys of any kind: equal ones have one. */
function ranksOf(keys, nulls) {
  const without = nulls.length > 0 ? new Set(nulls) : null;
  const found = new Set(without ? keys.filter((_, place) => !without.has(place)) : keys);
  const sorted = [...found].sort((a, b) => (a < b ? -1 : Number(a > b)));
  const ranks = new Map(sorted.map((key, rank) => [key, rank]));
  return Float64Array.from(keys, (key) => ranks.get(key) ?? 0);
}

/** Keys of 64 bits as words of 32, low ones at even places, which have their order without a sign. */
function wordsOf(keys, descending) {
  const words = new Uint32Array(keys.slice().buffer);
  const floats = keys instanceof Float64Array;
  const flip = descending ? 0xffff_ffff : 0;
  for (let at = 0; at < words.length; at += 2) {
    const high = words[at + 1];
    if (floats && high === SIGN && words[at] === 0) words[at + 1] = 0; // -0 is 0
    // of floats below 0, the larger bits are the lower number
    const low = floats && words[at + 1] >= SIGN ? 0xffff_ffff : 0;
    const sign = low || (keys instanceof BigUint64Array ? 0 : SIGN);
    words[at] = words[at] ^ low ^ flip;
    words[at + 1] = words[at + 1] ^ sign ^ flip;
  }
  return words;
}

/** *places* by the words of each: a pass for each digit of 16 bits, the lowest first. */
function sortedBy(words, places) {
  let from = places;
  let into = new Uint32Array(places.length);
  for (let digit = 0; digit < 4; digit += 1) {
    const word = digit >> 1;
    const shift = (digit & 1) * DIGIT_BITS;
    const starts = new Uint32Array(DIGITS + 1);
    for (const place of from) starts[((words[2 * place + word] >>> shift) & (DIGITS - 1)) + 1] += 1;
    if (starts.includes(from.length)) continue; // all have the same digit
    for (let value = 0; value < DIGITS; value += 1) starts[value + 1] += starts[value];
    for (const place of from) into[starts[(words[2 * place + word] >>> shift) & (DIGITS - 1)]++] = place;
    [from, into] = [into, from];
  }
  return from;
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
