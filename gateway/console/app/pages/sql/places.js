// Places in a text: the gateway counts code points, the editor UTF-16 units. Pure.

/** The unit in *text* where code point *points* begins. */
export function unitAt(text, points) {
  let unit = 0;
  for (let left = points; left > 0 && unit < text.length; left -= 1) {
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  return unit;
}

/** `{from, to}` of a mistake of /v1/check in *text*; a whole statement when no line is known. */
export function spanOf(text, mistake, statements) {
  if (!mistake.line) {
    const whole = statements[mistake.statement];
    return whole ? { from: unitAt(text, whole.start), to: unitAt(text, whole.end) } : { from: 0, to: text.length };
  }
  let start = 0;
  for (let line = 1; line < mistake.line; line += 1) {
    const next = text.indexOf("\n", start);
    if (next < 0) break;
    start = next + 1;
  }
  const from = start + unitAt(text.slice(start), mistake.column - 1);
  return { from, to: from + unitAt(text.slice(from), Math.max(mistake.length, 1)) };
}

/** Which of *statements* a cursor at *unit* means: the one that it is in or behind, else the first. */
export function statementAt(text, statements, unit) {
  return statements.findLast(({ start }) => unitAt(text, start) <= unit) ?? statements[0];
}

/** The first words of a text, as the name of its tab. */
export function titleOf(text) {
  const words = text.replace(/--[^\n]*/g, " ").trim().split(/\s+/).slice(0, 4).join(" ");
  return words.length > 28 ? words.slice(0, 27) + "…" : words || "New";
}
