// What a screen reader says without moving the focus.
import { signal } from "../../vendor/preact.js";

export const announced = signal("");

/** Say *text*; the same text is said again. */
export function announce(text) {
  announced.value = "";
  setTimeout(() => {
    announced.value = text;
  }, 50);
}
