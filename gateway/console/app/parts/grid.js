// A grid of the rows of an answer: a click on a column's name sorts.
import { html, useMemo, useSignal } from "../../vendor/preact.js";
import { announce } from "../core/live.js";
import { orderBy } from "./grid_order.js";
import { GridView, edgesFor } from "./grid_view.js";

/** @param rows arrays of cells, or `ArrowRows` */
export function Grid({ columns, rows, label }) {
  const sort = useSignal(null);
  const edges = useMemo(() => edgesFor(columns, rows), [columns, rows]);
  const order = useMemo(() => ordered(rows, columns, sort.value), [rows, columns, sort.value]);

  function sortBy(at) {
    const held = sort.value;
    if (held?.at !== at) sort.value = { at, descending: false };
    else sort.value = held.descending ? null : { at, descending: true };
    announce(sort.value ? `Sorted by ${columns[at].name}` : "In the order of the answer");
  }
  return html`<${GridView} columns=${columns} edges=${edges} count=${rows.length} label=${label}
    rowAt=${(place) => rows.at(order ? order[place] : place)} sort=${sort.value} sortBy=${sortBy} />`;
}

function ordered(rows, columns, sort) {
  return sort && orderBy(rows, sort.at, columns[sort.at].type, sort.descending);
}
