// A grid of any number of rows: only what is seen is in the page. Arrow keys move, Ctrl+C copies
// the cell, a click on a column's name sorts.
import { html, useEffect, useMemo, useRef, useSignal } from "../../vendor/preact.js";
import { cell } from "../core/format.js";
import { announce } from "../core/live.js";
import { copyText } from "./copy.js";
import { ROW_HEIGHT, edgesOf, heightOf, scrollTo, seenColumns, seenRows } from "./grid_layout.js";
import { orderBy } from "./grid_order.js";

const ROWS_MEASURED = 200;
const LINES_HIGH = 18;
const NUMBERS = /INT|FLOAT|DOUBLE|DECIMAL/;

export function Grid({ columns, rows, label }) {
  const view = useSignal({ top: 0, left: 0, height: ROW_HEIGHT * LINES_HIGH, width: 1200 });
  const sort = useSignal(null);
  const active = useSignal({ row: 0, column: 0 });
  const box = useRef(null);
  const edges = useMemo(() => edgesOf(columns.map((_, at) => longest(columns, rows, at))), [columns, rows]);
  const order = useMemo(() => ordered(rows, columns, sort.value), [rows, columns, sort.value]);
  useEffect(() => watchSize(box.current, view), []);
  const { top, left, height, width } = view.value;
  const shown = seenRows(rows.length, top, height - ROW_HEIGHT);
  const across = seenColumns(edges, left, width);
  const sizes = { height: Math.min(heightOf(rows.length) + ROW_HEIGHT + 18, ROW_HEIGHT * LINES_HIGH) };

  function sortBy(at) {
    const held = sort.value;
    if (held?.at !== at) sort.value = { at, descending: false };
    else sort.value = held.descending ? null : { at, descending: true };
    announce(sort.value ? `Sorted by ${columns[at].name}` : "In the order of the answer");
  }
  function press(event) {
    const { row, column } = active.value;
    if ((event.ctrlKey || event.metaKey) && event.key === "c" && rows.length > 0) {
      copyText(cell(rows[order ? order[row] : row][column]));
      announce("Copied the cell");
      return;
    }
    const next = moved(event, row, column, Math.floor(height / ROW_HEIGHT) - 2);
    if (!next) return;
    event.preventDefault();
    active.value = {
      row: Math.max(0, Math.min(rows.length - 1, next.row)),
      column: Math.max(0, Math.min(columns.length - 1, next.column)),
    };
    bringIntoView(box.current, active.value, rows.length, edges);
  }
  const wide = { width: edges.at(-1) };
  return html`
    <div class="grid" ref=${box} role="grid" tabindex="0" aria-label=${label} style=${sizes}
      aria-rowcount=${rows.length + 1} aria-colcount=${columns.length}
      aria-activedescendant=${rows.length > 0 ? `cell-${active.value.row}-${active.value.column}` : undefined}
      onKeyDown=${press}
      onScroll=${({ target }) => (view.value = { ...view.value, top: target.scrollTop, left: target.scrollLeft })}>
      <div role="rowgroup" class="head" style=${wide}>
        <div role="row" aria-rowindex="1">
          ${slots(across).map((at) => html`<${Head} key=${at} at=${at} column=${columns[at]} edges=${edges}
            sort=${sort.value} sortBy=${sortBy} />`)}
        </div>
      </div>
      <div role="rowgroup" class="body" style=${{ ...wide, height: heightOf(rows.length) }}>
        ${slots(shown).map((place) => html`<${Row} key=${place} place=${place} columns=${columns}
          top=${shown.top + (place - shown.first) * ROW_HEIGHT} edges=${edges} across=${across}
          row=${rows[order ? order[place] : place]} active=${active} />`)}
      </div>
    </div>
  `;
}

function Head({ at, column, edges, sort, sortBy }) {
  const mine = sort?.at === at;
  const direction = mine ? (sort.descending ? "descending" : "ascending") : "none";
  const arrow = { none: "", ascending: " ▲", descending: " ▼" }[direction];
  return html`
    <div role="columnheader" aria-sort=${direction} aria-colindex=${at + 1} style=${span(edges, at)}>
      <button tabindex="-1" title=${`${column.name} ${column.type}`} onClick=${() => sortBy(at)}>
        ${column.name}${arrow}
      </button>
    </div>
  `;
}

function Row({ place, row, top, columns, edges, across, active }) {
  const { row: activeRow, column: activeColumn } = active.value;
  return html`
    <div role="row" aria-rowindex=${place + 2} class=${place % 2 ? "odd" : ""}
      style=${{ transform: `translateY(${top}px)`, width: edges.at(-1) }}>
      ${slots(across).map((at) => {
        const value = row[at];
        const kind = value === null ? "null" : NUMBERS.test(columns[at].type) ? "number" : "";
        const here = place === activeRow && at === activeColumn ? " active" : "";
        const text = cell(value);
        return html`
          <div role="gridcell" key=${at} id=${`cell-${place}-${at}`} aria-colindex=${at + 1} class=${kind + here}
            style=${span(edges, at)} title=${text.length > 40 ? text : undefined}
            onClick=${() => (active.value = { row: place, column: at })}>${text}</div>
        `;
      })}
    </div>
  `;
}

function slots({ first, last }) {
  return Array.from({ length: Math.max(last - first, 0) }, (_, at) => first + at);
}

function span(edges, at) {
  return { left: edges[at], width: edges[at + 1] - edges[at] };
}

function longest(columns, rows, at) {
  let most = columns[at].name.length + 2;
  for (const row of rows.slice(0, ROWS_MEASURED)) most = Math.max(most, cell(row[at]).length);
  return most;
}

function ordered(rows, columns, sort) {
  return sort && orderBy(rows, sort.at, columns[sort.at].type, sort.descending);
}

function moved(event, row, column, page) {
  const steps = {
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    PageDown: [page, 0],
    PageUp: [-page, 0],
    Home: [event.ctrlKey ? -Infinity : 0, -Infinity],
    End: [event.ctrlKey ? Infinity : 0, Infinity],
  }[event.key];
  return steps && { row: row + steps[0], column: column + steps[1] };
}

function bringIntoView(box, { row, column }, rows, edges) {
  box.scrollTop = scrollTo(row, rows, box.scrollTop, box.clientHeight - ROW_HEIGHT);
  if (edges[column] < box.scrollLeft) box.scrollLeft = edges[column];
  else if (edges[column + 1] > box.scrollLeft + box.clientWidth) {
    box.scrollLeft = edges[column + 1] - box.clientWidth;
  }
}

function watchSize(box, view) {
  const watch = new ResizeObserver(() => {
    view.value = { ...view.value, height: box.clientHeight, width: box.clientWidth };
  });
  watch.observe(box);
  return () => watch.disconnect();
}
