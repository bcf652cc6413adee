// The streams that read a table, and those that write it.
import { html } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";
import { usePoll } from "../../core/poll.js";
import { objects, quoteText } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { State } from "../../parts/state.js";

export function Neighbours({ database, table }) {
  const { answer, fault } = usePoll(
    (signal) =>
      objects(
        "SELECT stream_name, source_db, source_table, status, rows_in, rows_out FROM information_schema.ins_streams" +
          ` WHERE (source_db = ${quoteText(database)} AND source_table = ${quoteText(table)})` +
          ` OR (target_db = ${quoteText(database)} AND target_table = ${quoteText(table)})`,
        { signal },
      ),
    5,
  );
  const reads = (one) => one.source_db === database && one.source_table === table;
  return html`
    <h2>Streams that read or write it</h2>
    <${Fault} fault=${fault.value} />
    <${List} label="Streams of this table" rows=${answer.value ?? []} keyOf=${(one) => one.stream_name}
      empty="None."
      columns=${[
        { title: "Stream", show: (one) => html`<a href=${linkTo("streams", one.source_db, one.stream_name)}>${one.stream_name}</a>` },
        { title: "Does", show: (one) => (reads(one) ? "reads" : "writes") },
        { title: "Status", show: (one) => html`<${State} word=${one.status} />` },
        { title: "Rows", number: true, show: (one) => count(reads(one) ? one.rows_in : one.rows_out) },
      ]} />
  `;
}
