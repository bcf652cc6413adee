// Rows of a list that are chosen with a box.
import { html, useSignal } from "../../../vendor/preact.js";

/** `column` of boxes goes in front of a list's others; `of(rows)` are those chosen, `some(rows)` says whether any can be. */
export function useChosen(keyOf, nameOf, canChoose) {
  const keys = useSignal(new Set());
  function turn(key) {
    const next = new Set(keys.value);
    if (!next.delete(key)) next.add(key);
    keys.value = next;
  }
  const column = {
    title: "Choose",
    show: (row) =>
      canChoose(row) &&
      html`<input type="checkbox" aria-label=${`Choose ${nameOf(row)}`} checked=${keys.value.has(keyOf(row))} onChange=${() => turn(keyOf(row))} />`,
  };
  return {
    column,
    of: (rows) => rows.filter((row) => keys.value.has(keyOf(row)) && canChoose(row)),
    some: (rows) => rows.some(canChoose),
    every: (rows) => (keys.value = new Set(rows.filter(canChoose).map(keyOf))),
    none: () => (keys.value = new Set()),
  };
}
