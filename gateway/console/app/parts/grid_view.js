// A viewport on any number of rows: only what is seen is in the page. Arrow keys move, Ctrl+C copies
// the cell. Whose rows they are, and whether they are here yet, is up to who uses it.
import { html, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { cell } from "../core/format.js";
import { announce } from "../core/live.js";
import { copyText } from "./copy.js";
import { ROW_HEIGHT, edgesOf, heightOf, scrollTo, seenColumns, seenRows } from "./grid_layout.js";

const ROWS_MEASURED = 200;
const LINES_HIGH = 18;
const NUMBERS = /INT|FLOAT|DOUBLE|DECIMAL/;

/** Left edges of *columns* that are wide enough for the first of *rows*. */
export function edgesFor(columns, rows) {
  return edgesOf(columns.map((_, at) => longest(columns, rows, at)));
}

/**
 * @param edges of the columns, as `edgesFor` gives them
 * @param rowAt gives a row by its place; undefined while it is not here
 * @param sort `{at, descending}` of the column that orders the rows, or null
 * @param sortBy is called with a column's place; without it, nothing sorts
 * @param seen is told the first and last place (exclusive) that are drawn, and the scroll position
 * @param box a ref of the scrolled element, for who moves it
 */
export function GridView({ columns, edges, count, rowAt, label, sort = null, sortBy, seen, box: given }) {
  const view = useSignal({ top: 0, left: 0, height: ROW_HEIGHT * LINES_HIGH, width: 1200 });
  const active = useSignal({ row: 0, column: 0 });
  const own = useRef(null);
  const box = given ?? own;
  useEffect(() => watchSize(box.current, view), []);
  const { top, left, height, width } = view.value;
  const shown = seenRows(count, top, height - ROW_HEIGHT);
  useEffect(() => {
    seen?.(shown.first, shown.last, top);
  }, [shown.first, shown.last, top === 0]);
  const across = seenColumns(edges, left, width);
  const sizes = { height: Math.min(heightOf(count) + ROW_HEIGHT + 18, ROW_HEIGHT * LINES_HIGH) };

  function press(event) {
    const { row, column } = active.value;
    if ((event.ctrlKey || event.metaKey) && event.key === "c" && rowAt(row)) {
      copyText(cell(rowAt(row)[column]));
      announce("Copied the cell");
      return;
    }
    const next = moved(event, row, column, Math.floor(height / ROW_HEIGHT) - 2);
    if (!next) return;
    event.preventDefault();
    active.value = {
      row: Math.max(0, Math.min(count - 1, next.row)),
      column: Math.max(0, Math.min(columns.length - 1, next.column)),
    };
    bringIntoView(box.current, active.value, count, edges);
  }
  const wide = { width: edges.at(-1) };
  return html`
    <div class="grid" ref=${box} role="grid" tabindex="0" aria-label=${label} style=${sizes}
      aria-rowcount=${count + 1} aria-colcount=${columns.length}
      aria-activedescendant=${count > 0 ? `cell-${active.value.row}-${active.value.column}` : undefined}
      onKeyDown=${press}
      onScroll=${({ target }) => (view.value = { ...view.value, top: target.scrollTop, left: target.scrollLeft })}>
      <div role="rowgroup" class="head" style=${wide}>
        <div role="row" aria-rowindex="1">
          ${slots(across).map((at) => html`<${Head} key=${at} at=${at} column=${columns[at]} edges=${edges}
            sort=${sort} sortBy=${sortBy} />`)}
        </div>
      </div>
      <div role="rowgroup" class="body" style=${{ ...wide, height: heightOf(count) }}>
        ${slots(shown).map((place) => html`<${Row} key=${place} place=${place} columns=${columns}
          top=${shown.top + (place - shown.first) * ROW_HEIGHT} edges=${edges} across=${across}
          row=${rowAt(place)} active=${active} />`)}
      </div>
    </div>
  `;
}

function Head({ at, column, edges, sort, sortBy }) {
  const title = `${column.name} ${column.type}`;
  if (!sortBy) {
    return html`<div role="columnheader" class="fixed" aria-colindex=${at + 1} title=${title} style=${span(edges, at)}>${column.name}</div>`;
  }
  const mine = sort?.at === at;
  const direction = mine ? (sort.descending ? "descending" : "ascending") : "none";
  const arrow = { none: "", ascending: " ▲", descending: " ▼" }[direction];
  return html`
    <div role="columnheader" aria-sort=${direction} aria-colindex=${at + 1} style=${span(edges, at)}>
      <button tabindex="-1" title=${title} onClick=${() => sortBy(at)}>
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
        const value = row?.[at];
        const kind = row && value === null ? "null" : NUMBERS.test(columns[at].type) ? "number" : "";
        const here = place === activeRow && at === activeColumn ? " active" : "";
        const text = row ? cell(value) : "…";
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

function bringIntoView(box, { row, column }, count, edges) {
  box.scrollTop = scrollTo(row, count, box.scrollTop, box.clientHeight - ROW_HEIGHT);
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
