// What to follow: a field that completes the names of tables and streams, and takes URIs.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { objects } from "../../core/query.js";
import { go } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { partsOf } from "./subject.js";

const MOST = 500;
const OWN = "('information_schema', 'performance_schema')";
const NAMES = [
  `SELECT db_name AS home, stable_name AS name, 'supertable' AS kind FROM information_schema.ins_stables LIMIT ${MOST}`,
  "SELECT db_name AS home, table_name AS name, 'table' AS kind FROM information_schema.ins_tables" +
    ` WHERE \`type\` = 'NORMAL_TABLE' AND db_name NOT IN ${OWN} LIMIT ${MOST}`,
  `SELECT source_db AS home, stream_name AS name, 'stream' AS kind FROM information_schema.ins_streams LIMIT ${MOST}`,
];

/** @param chosen what is followed now, as somebody would write it */
export function Picker({ chosen }) {
  const names = useSignal([]);
  const fault = useSignal(null);
  const text = useSignal(chosen);
  const field = useRef(null);
  useEffect(() => {
    if (!chosen) field.current.focus();
    Promise.all(NAMES.map((sql) => objects(sql))).then(
      (found) => (names.value = found.flat().sort((a, b) => (`${a.home}.${a.name}` < `${b.home}.${b.name}` ? -1 : 1))),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  function follow(event) {
    event.preventDefault();
    if (text.value.trim()) go("live", ...partsOf(text.value));
  }
  return html`
    <form class="row live-choice" onSubmit=${follow}>
      <label>Table, stream or pq:// URI
        <input ref=${field} list="followable" value=${text.value} autocomplete="off" spellcheck=${false} placeholder="database.name"
          onInput=${(event) => (text.value = event.target.value)} />
      </label>
      <datalist id="followable">
        ${names.value.map(({ home, name, kind }) => html`<option key=${`${kind} ${home}.${name}`} value=${`${home}.${name}`}>${kind}</option>`)}
      </datalist>
      <button type="submit">Follow</button>
    </form>
    <${Fault} fault=${fault.value} />
  `;
}
