// What the plan of an edited statement says about the stream that it replaces. Pure.

const BECOMES = ["state", "options", "history", "results"];

/** Those of the plan's lines that tell what becomes of the stream and of what it holds. */
export function becomes(lines) {
  return lines.filter(([item]) => BECOMES.includes(item));
}

/**
 * Why *text* cannot be run in the place of the stream yet; null when it can.
 * @param plan what `explain` put last
 */
export function hindrance(plan, text, { database, name }) {
  if (!plan) return "Check says what the statement would do; then it can replace the stream.";
  if (plan.text !== text) return "The text has changed since it was checked.";
  if (plan.fault) return "Mend it, and check it again.";
  if (!plan.lines) return "It is being checked …";
  if (plan.statements !== 1) return "Write one statement: the one that replaces the stream.";
  const replaced = plan.lines.find(([item]) => item === "replaces")?.[1];
  if (replaced === `${database}.${name}`) return null;
  return `It does not replace ${database}.${name}: write CREATE OR REPLACE STREAM and its name.`;
}

/** Whether the statement was refused for want of a history to begin anew with. */
export function wantsHistory(plan, text) {
  return plan?.fault?.code === "E_STREAM_STATE" && plan.text === text && !/\bFILL_HISTORY\s+1\b/i.test(text);
}
