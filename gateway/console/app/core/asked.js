// A question that a page asks once, when it opens.
import { useEffect, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "./http.js";

/** Signals of the answer of *question* and of its fault. */
export function useAnswer(question) {
  const answer = useSignal(null);
  const fault = useSignal(null);
  useEffect(() => {
    question().then(
      (found) => (answer.value = found),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  return { answer, fault };
}
