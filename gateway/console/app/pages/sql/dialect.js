// The dialect's words, functions and types, for editors.
import { useEffect, useSignal } from "../../../vendor/preact.js";
import { ask, faultFrom } from "../../core/http.js";

/** Signals of what /v1/dialect says, null until it does, and of why it does not. */
export function useDialect() {
  const dialect = useSignal(null);
  const fault = useSignal(null);
  useEffect(() => {
    ask("/v1/dialect").then(
      (found) => (dialect.value = found),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  return { dialect, fault };
}
