// Small things that the browser keeps between visits, one set for each user.
import { user } from "./session.js";

const key = (name) => `penstock.${user.value}.${name}`;

export function recall(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key(name))) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep *value*. A browser without room or leave keeps nothing, and all else works. */
export function keep(name, value) {
  try {
    localStorage.setItem(key(name), JSON.stringify(value));
  } catch {
    // private windows and full stores
  }
}
