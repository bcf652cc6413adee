// One table that is followed: its state and counts, a chart, and a grid of what came and what there was.
import { html, useEffect, useMemo, useRef, useSignal } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { follow } from "../../core/follow.js";
import { count, rate } from "../../core/format.js";
import { announce } from "../../core/live.js";
import { Fault } from "../../parts/fault.js";
import { GridView, edgesFor } from "../../parts/grid_view.js";
import { State } from "../../parts/state.js";
import { Arrivals, cellsWith } from "./arrivals.js";
import { LineChoice } from "./line_choice.js";
import { Past } from "./past.js";

const DRAW_MS = 250;
const OP = { name: "op", type: "VARCHAR" };

/** @param stopped true: nothing comes any more, and what came stays */
export function Followed({ subject, stopped = false }) {
  const columns = useMemo(() => [OP, ...subject.columns], []);
  const box = useRef(null);
  const one = useFollowed(subject, stopped);
  const { arrivals, past } = one.held;
  const here = arrivals.rows.length;
  const total = here + (past?.total ?? 0);
  const sample = past?.newest() ?? [];
  const edges = useMemo(() => edgesOf(columns, sample.length > 0 ? sample : arrivals.rows), [sample.length > 0, here > 0]);
  function toTop() {
    box.current.scrollTop = 0;
    one.paused.value = false;
  }
  function seen(first, last, top) {
    one.scrolled.value = top > 0;
    one.held.looked = [first, last];
    past?.look(first - here, last - here);
  }
  return html`
    <${Fault} fault=${one.fault.value} />
    <${Figures} one=${one} total=${total} toTop=${toTop} stopped=${stopped} />
    <${Missing} arrivals=${arrivals} load=${one.load} />
    <${LineChoice} subject=${subject} columns=${columns} rows=${[...arrivals.rows, ...sample]} drawn=${one.drawn.value} />
    ${!past && html`<p>Counting rows …</p>`}
    ${past && total === 0 && html`<p>It has no rows yet. They are shown as they come.</p>`}
    ${total > 0 && html`<${GridView} columns=${columns} edges=${edges} count=${total} label=${`Rows of ${subject.table}`} box=${box} seen=${seen}
      rowAt=${(place) => (place < here ? arrivals.rows[place] : past?.rowAt(place - here))} />`}
  `;
}

/** The first column is wide enough for what becomes of rows, also before some came. */
function edgesOf(columns, rows) {
  return edgesFor(columns, rows.map(([, ...row]) => ["upsert", ...row]));
}

/** Follow a table while the component is on the screen, until it is stopped. */
function useFollowed(subject, stopped) {
  const held = useRef({ arrivals: new Arrivals(), past: null, looked: [0, 0] });
  const state = useSignal("waiting");
  const fault = useSignal(null);
  const paused = useSignal(false);
  const scrolled = useSignal(false);
  const loading = useSignal(false);
  const drawn = useSignal(0);
  const load = useRef(() => {});
  const stop = useRef(() => {});
  useEffect(() => {
    let ended = false;
    let counting = null;
    load.current = async () => {
      counting?.close();
      const next = new Past(subject, (wrong) => {
        if (wrong) fault.value = wrong;
        drawn.value += 1;
      });
      counting = next;
      loading.value = true;
      await next.open();
      if (ended || counting !== next) return;
      held.current.past?.close();
      held.current.past = next;
      held.current.arrivals.forget();
      next.look(...held.current.looked);
      loading.value = false;
      counting = null;
      drawn.value += 1;
    };
    if (stopped) load.current();
    else stop.current = listen(subject, { held: held.current, state, fault, load: () => load.current() });
    const timer = setInterval(() => {
      const { arrivals } = held.current;
      if (arrivals.waiting.length === 0) return;
      if (!paused.value && !scrolled.value && !loading.value) arrivals.show();
      drawn.value += 1;
    }, DRAW_MS);
    return () => {
      ended = true;
      clearInterval(timer);
      stop.current();
      counting?.close();
      held.current.past?.close();
    };
  }, []);
  useEffect(() => {
    if (stopped) stop.current();
  }, [stopped]);
  return { held: held.current, state, fault, paused, scrolled, drawn, load: () => load.current() };
}

function listen(subject, { held, state, fault, load }) {
  const cells = cellsWith(subject.columns, subject.precision);
  const following = follow(`${subject.database}.${subject.table}`, {
    state: (word) => (state.value = word),
    begin: load,
    rows: (rows, skipped) => held.arrivals.take(rows.map(cells), skipped),
    fault: (wrong) => {
      state.value = "failed";
      fault.value = wrong;
      load();
    },
  });
  return following.stop;
}

function Figures({ one, total, toTop, stopped }) {
  const { arrivals } = one.held;
  function pause() {
    one.paused.value = !one.paused.value;
    announce(one.paused.value ? "Paused" : "Resumed");
  }
  useCommands([{ name: "Pause or resume", run: pause }]);
  const word = stopped ? "stopped" : one.paused.value && one.state.value === "live" ? "paused" : one.state.value;
  return html`
    <div class="row">
      <${State} word=${word} />
      ${!stopped && html`<button onClick=${pause}>${one.paused.value ? "Resume" : "Pause"}</button>`}
      <span class="figures">${count(arrivals.received)} received, <${Rate} arrivals=${arrivals} />; ${count(total)} shown</span>
      ${arrivals.waiting.length > 0 && html`<button onClick=${toTop}>Show ${count(arrivals.waiting.length)} new</button>`}
    </div>
  `;
}

/** Rows that came in the last second. */
function Rate({ arrivals }) {
  const found = useSignal(0);
  useEffect(() => {
    let before = arrivals.received;
    const timer = setInterval(() => {
      found.value = arrivals.received - before;
      before = arrivals.received;
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  return rate(found.value);
}

/** Rows that came and are not on this page: they are stored. */
function Missing({ arrivals, load }) {
  const { skipped, gone } = arrivals;
  if (skipped + gone === 0) return null;
  return html`
    <div class="note row" role="status">
      <span>
        ${skipped > 0 && html`${count(skipped)} rows were left out: they came faster than this page takes them. `}
        ${gone > 0 && html`${count(gone)} rows that came are not kept here any more. `}
        The table has them all.
      </span>
      <button onClick=${load}>Load them</button>
    </div>
  `;
}
