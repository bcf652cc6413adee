// Times as whole ticks since 1970, and as the gateway writes them. Pure.

const DIGITS = { ms: 3, us: 6, ns: 9 };
/** The unit of a tick in a length of time, as SQL has it. */
export const UNITS = { ms: "a", us: "u", ns: "b" };

/** Ticks in a second. */
export function perSecond(precision) {
  return 10n ** BigInt(DIGITS[precision]);
}

/** `2026-03-01T09:00:05.250Z` of ticks, which may be a text. */
export function timeText(ticks, precision) {
  const each = perSecond(precision);
  const whole = BigInt(ticks);
  const rest = ((whole % each) + each) % each;
  const seconds = Number((whole - rest) / each);
  const head = new Date(seconds * 1000).toISOString().slice(0, 19);
  return `${head}.${String(rest).padStart(DIGITS[precision], "0")}Z`;
}

/** Seconds since 1970 of such a text. */
export function secondsOf(text) {
  return Date.parse(`${text.slice(0, 19)}Z`) / 1000 + Number(`0${text.slice(19, -1)}`);
}
