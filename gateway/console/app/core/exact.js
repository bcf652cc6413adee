// JSON with exact whole numbers: what a JavaScript number cannot hold becomes a BigInt.

// a text, or a number: texts are matched so that digits inside them stay as they are
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WHOLE = /^-?\d{16,}$/;

/** Parse JSON; whole numbers of 16 digits and more come as BigInt. */
export function parseExact(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  // no text of an answer can begin with it
  const mark = `whole number ${Math.random()}:`;
  const marked = text.replace(TOKEN, (token) => (WHOLE.test(token) ? `"${mark}${token}"` : token));
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}
