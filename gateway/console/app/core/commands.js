// What can be done from anywhere: the pages, and what the page on the screen offers.
import { computed, signal, useEffect } from "../../vendor/preact.js";

const offered = signal([]);
const pages = signal([]);

/** All commands: `{name, keys?, last?, run}`; those with `last` are behind all others. */
export const commands = computed(() => [
  ...offered.value.filter(({ last }) => !last),
  ...pages.value,
  ...offered.value.filter(({ last }) => last),
]);

export function setPageCommands(list) {
  pages.value = list;
}

/** Offer commands while a component is on the screen. */
export function useCommands(list) {
  useEffect(() => {
    offered.value = [...offered.value, ...list];
    return () => {
      offered.value = offered.value.filter((command) => !list.includes(command));
    };
  }, []);
}
