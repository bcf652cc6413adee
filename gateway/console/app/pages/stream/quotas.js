// The quotas of a stream, and how much of each it uses.
import { html } from "../../../vendor/preact.js";
import { bytes, rate } from "../../core/format.js";
import { quotePath } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { may } from "../../core/session.js";

const MB = 2 ** 20;
/** From this part of a limit on a meter is not green any more. */
const NEAR = 0.8;

export function Quotas({ stream }) {
  const { database, name, max_results: results, max_state: state } = stream;
  const change = `ALTER STREAM ${quotePath(database, name)} MAX_RESULTS ${results ?? 0} MAX_STATE ${state ?? 0}`;
  return html`
    <div class="row spread">
      <h2>Quotas</h2>
      ${may("ALTER", "stream", database, name) && html`<a href=${linkTo("sql", change, database)}>Change them in SQL</a>`}
    </div>
    <dl class="about">
      <${Quota} what="Results" word="MAX_RESULTS" used=${stream.rows_out_rate ?? 0} limit=${results} show=${rate}
        beyond="beyond it the stream is throttled, and loses nothing" />
      <${Quota} what="State" word="MAX_STATE" used=${stream.full_state_bytes} limit=${state && state * MB} show=${bytes}
        beyond="beyond it the stream is stopped" />
    </dl>
  `;
}

function Quota({ what, word, used, limit, show, beyond }) {
  return html`
    <div>
      <dt>${what}</dt>
      <dd>
        ${limit
          ? html`
            <meter class="gauge" min="0" max=${limit} high=${limit * NEAR} value=${used} aria-label=${`${what} of ${word}`}></meter>
            ${" "}${show(used)} of ${show(limit)} (${word}); ${beyond}
          `
          : `${show(used)}; no quota (${word})`}
      </dd>
    </div>
  `;
}
