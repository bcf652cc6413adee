// Questions asked again and again while their page is seen.
import { useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "./http.js";

/**
 * Ask `question(signal)` now and every *seconds*, never while the tab is hidden, never twice at once.
 * Returns signals of the last answer and of the fault of the last question, and `again()`.
 */
export function usePoll(question, seconds, dependencies = []) {
  const answer = useSignal(null);
  const fault = useSignal(null);
  const again = useRef(() => {});
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let busy = false;
    async function turn() {
      clearTimeout(timer);
      if (busy || document.hidden || stop.signal.aborted) return;
      busy = true;
      try {
        const found = await question(stop.signal);
        if (stop.signal.aborted) return;
        answer.value = found;
        fault.value = null;
      } catch (error) {
        if (stop.signal.aborted) return;
        fault.value = faultFrom(error);
      } finally {
        busy = false;
      }
      timer = setTimeout(turn, seconds * 1000);
    }
    again.current = turn;
    document.addEventListener("visibilitychange", turn);
    turn();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", turn);
    };
  }, dependencies);
  return { answer, fault, again: () => again.current() };
}
