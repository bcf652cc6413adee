// Pages by the part of the address behind `#`: `#/streams/plant/averages`.
import { signal } from "../../vendor/preact.js";

/** The parts of the current address. */
export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

function read() {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode);
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page, for links. */
export function linkTo(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

export function go(...parts) {
  location.hash = linkTo(...parts);
}
