// How long a statement takes.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";

/** Counts while a statement runs, and stays when it has run. @param state `{started, elapsed?, stop?}` */
export function Elapsed({ state }) {
  const now = useSignal(performance.now());
  useEffect(() => {
    if (!state.stop) return undefined;
    const timer = setInterval(() => (now.value = performance.now()), 100);
    return () => clearInterval(timer);
  }, [state]);
  const elapsed = state.elapsed ?? Math.max(now.value - state.started, 0);
  return html`<span class="soft">${elapsed < 1000 ? `${Math.round(elapsed)} ms` : `${(elapsed / 1000).toFixed(1)} s`}</span>`;
}
