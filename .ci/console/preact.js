import { h } from "preact";
import htm from "htm";

export { render } from "preact";
export { useEffect, useMemo, useRef } from "preact/hooks";
export { computed, signal, useSignal } from "@preact/signals";
export const html = htm.bind(h);
