// Which part of a large grid is seen, and where its rows and columns go. Pure.

export const ROW_HEIGHT = 26;
/** Browsers draw nothing beyond some 17 million pixels: a longer grid scrolls in larger steps. */
const MOST_PIXELS = 15_000_000;
const SPARE_ROWS = 8;
const LEAST_WIDTH = 64;
const MOST_WIDTH = 420;
const CHARACTER = 8;
const PADDING = 22;

/** Height of the scrolled part of *rows* rows. */
export function heightOf(rows) {
  return Math.min(rows * ROW_HEIGHT, MOST_PIXELS);
}

/** First and last row (exclusive) seen, and `top`: where the first is, in the scrolled part. */
export function seenRows(rows, scrollTop, viewHeight) {
  const whole = rows * ROW_HEIGHT;
  const height = heightOf(rows);
  const room = Math.max(height - viewHeight, 1);
  // where the view begins in a grid of full height
  const at = height === whole ? scrollTop : (Math.min(scrollTop, room) / room) * (whole - viewHeight);
  const first = Math.max(Math.floor(at / ROW_HEIGHT) - SPARE_ROWS, 0);
  const last = Math.min(Math.ceil((at + viewHeight) / ROW_HEIGHT) + SPARE_ROWS, rows);
  return { first, last, top: scrollTop - at + first * ROW_HEIGHT };
}

/** The scroll position that shows *row* when it is not seen now. */
export function scrollTo(row, rows, scrollTop, viewHeight) {
  const whole = rows * ROW_HEIGHT;
  const height = heightOf(rows);
  const factor = height === whole ? 1 : (height - viewHeight) / (whole - viewHeight);
  const at = scrollTop / factor;
  const top = row * ROW_HEIGHT;
  if (top < at) return top * factor;
  if (top + ROW_HEIGHT > at + viewHeight) return (top + ROW_HEIGHT - viewHeight) * factor;
  return scrollTop;
}

/** Left edges of columns, and the width of all behind them, from the longest of some texts. */
export function edgesOf(lengths) {
  const edges = [0];
  for (const length of lengths) {
    const width = Math.min(Math.max(length * CHARACTER + PADDING, LEAST_WIDTH), MOST_WIDTH);
    edges.push(edges.at(-1) + width);
  }
  return edges;
}

/** First and last column (exclusive) seen. */
export function seenColumns(edges, scrollLeft, viewWidth) {
  const columns = edges.length - 1;
  let first = 0;
  while (first < columns - 1 && edges[first + 1] < scrollLeft) first += 1;
  let last = first;
  while (last < columns && edges[last] < scrollLeft + viewWidth) last += 1;
  return { first, last: Math.max(last, first + 1) };
}
