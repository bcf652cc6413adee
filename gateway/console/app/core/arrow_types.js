// Columns of an Arrow answer: what type each has in SQL, and how its values become cells and keys of
// an order. What a cell holds is what the gateway's JSON has for it, digit by digit. Pure.
import { Type } from "../../vendor/arrow.js";
import { parseExact } from "./exact.js";
import { timeText } from "./ticks.js";

const TYPE_KEY = "penstock.type";
/** Where the store says the type of a column. */
const STORE_KEY = "type";
const WHOLE = { 8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT" };
/** By Arrow's number of a unit; seconds become milliseconds, as in JSON. */
const PRECISIONS = ["ms", "ms", "us", "ns"];
const SECOND = 0;
const DAY_MS = 86_400_000n;
const BITS_OF_DECIMAL = 128;
const FEWEST_DIGITS = 6;
const MOST_DIGITS = 9;

/** The SQL type of a field, as the gateway's JSON names it. */
export function typeOf(field) {
  const declared = field.metadata.get(TYPE_KEY) ?? sized(field.metadata.get(STORE_KEY) ?? "");
  if (declared) return declared.startsWith("DECIMAL") ? declared : declared.split("(")[0];
  const { type } = field;
  if (type.typeId === Type.Int) return WHOLE[type.bitWidth] + (type.isSigned ? "" : " UNSIGNED");
  if (type.typeId === Type.Float) return isSingle(type) ? "FLOAT" : "DOUBLE";
  if (type.typeId === Type.Decimal) return `DECIMAL(${type.precision},${type.scale})`;
  if (type.typeId === Type.Timestamp || type.typeId === Type.Date) return "TIMESTAMP";
  if (isBinary(type)) return "VARBINARY";
  return type.typeId === Type.Bool || type.typeId === Type.Null ? "BOOL" : "VARCHAR";
}

/** The store's word for a text of known length; CAST(x AS VARCHAR) has none, which is 0. */
function sized(told) {
  return /^(VARCHAR|NCHAR|VARBINARY)\((?!0\))\d+\)$/.test(told) ? told : "";
}

/**
 * What gives the cell of a row from a column of one batch: `read(vector, place)`, never for NULL.
 * @param kind the column's type in SQL
 */
export function readerOf(type, kind) {
  if (type.typeId === Type.Timestamp || type.typeId === Type.Date) {
    return (vector, place) => timeText(ticksOf(type, vector.data[0].values[place]), precisionOf(type));
  }
  if (type.typeId === Type.Decimal) return (vector, place) => decimalText(unscaledOf(vector, place), type.scale);
  if (type.typeId === Type.Float && isSingle(type)) return (vector, place) => shortFloat(vector.get(place));
  if (isBinary(type)) return (vector, place) => hexOf(vector.get(place));
  if (kind === "JSON") return (vector, place) => parseExact(vector.get(place));
  return (vector, place) => vector.get(place);
}

/**
 * What orders values of a column: the array that can hold their keys, and `key(vector, place)`;
 * without it, the values of Arrow are the keys.
 */
export function keysOf(type, kind) {
  if (type.typeId === Type.Timestamp || (type.typeId === Type.Date && type.unit > 0)) return { Held: BigInt64Array };
  if (type.typeId === Type.Int && type.bitWidth === 64) return { Held: type.isSigned ? BigInt64Array : BigUint64Array };
  if ([Type.Int, Type.Float, Type.Date].includes(type.typeId)) return { Held: Float64Array };
  // decimals of one column have the same number of digits behind the point
  if (type.typeId === Type.Decimal) return { Held: Array, key: unscaledOf };
  const read = readerOf(type, kind);
  return { Held: Array, key: (vector, place) => orderedText(read(vector, place)) };
}

function orderedText(value) {
  if (typeof value !== "object") return value;
  return JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner));
}

function isSingle(type) {
  return type.precision === 1;
}

function isBinary(type) {
  return [Type.Binary, Type.LargeBinary, Type.BinaryView, Type.FixedSizeBinary].includes(type.typeId);
}

function precisionOf(type) {
  return type.typeId === Type.Date ? "ms" : PRECISIONS[type.unit];
}

function ticksOf(type, raw) {
  if (type.typeId === Type.Date) return type.unit === 0 ? BigInt(raw) * DAY_MS : BigInt(raw);
  return type.unit === SECOND ? raw * 1000n : raw;
}

/** The digits of a DECIMAL without its point; Arrow has them as words of 32 bits, the lowest first. */
function unscaledOf(vector, place) {
  const words = vector.get(place);
  let value = 0n;
  for (let at = words.length - 1; at >= 0; at -= 1) value = (value << 32n) | BigInt(words[at]);
  return BigInt.asIntN(words.length === 4 ? BITS_OF_DECIMAL : words.length * 32, value);
}

function decimalText(unscaled, scale) {
  if (scale === 0) return String(unscaled);
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  return `${unscaled < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** The number with the fewest digits that is this FLOAT: as a DOUBLE it would have some fifteen. */
function shortFloat(value) {
  for (let digits = FEWEST_DIGITS; digits < MOST_DIGITS; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(MOST_DIGITS));
}

function hexOf(bytes) {
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}
