// What can be done from anywhere: the pages, and what the page on the screen offers.
import { computed, signal, useEffect } from "../../vendor/preact.js";

const offered = signal([]);
const pages = signal([]);

/** All commands: `{name, keys?, run}`. */
export const commands = computed(() => [...offered.value, ...pages.value]);

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
