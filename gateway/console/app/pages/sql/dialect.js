// The dialect's words, functions and types, for editors.
import { useAnswer } from "../../core/asked.js";
import { ask } from "../../core/http.js";

/** Signals of what /v1/dialect says, null until it does, and of why it does not. */
export function useDialect() {
  const { answer, fault } = useAnswer(() => ask("/v1/dialect"));
  return { dialect: answer, fault };
}
