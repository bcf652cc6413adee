// One field of the form that writes a row: the column's name and type, its value, or NULL.
import { html } from "../../../vendor/preact.js";
import { isText, kindOfType } from "./insert_text.js";

/** The id of a column's field on the page. */
export function idOf(column) {
  return `insert ${column}`.replace(/\s/g, "-");
}

/**
 * @param column `{name, type, tag, needed}`; one that is needed cannot be NULL
 * @param value `{text, none}`; `change(value)` sets it
 * @param left is called when the field is left with another text
 * @param wrong what the gateway says of the value, or null
 */
export function InsertField({ column: { name, type, tag, needed }, label = name, value, change, left, wrong }) {
  const id = idOf(name);
  const kind = kindOfType(type);
  const about = wrong ? `${id}-wrong` : undefined;
  // an emptied field is NULL, but for a text, which may be empty
  const write = (text) => change({ text, none: !needed && text === "" && !isText(type) });
  const field = { id, "aria-invalid": Boolean(wrong), "aria-describedby": about, required: needed };
  return html`
    <div class="field">
      <label for=${id}>${label} <small>${type}${tag ? ", tag" : ""}${kind === "VARBINARY" ? ", in hex" : ""}</small></label>
      <div class="row">
        ${kind === "BOOL"
          ? html`
            <select ...${field} value=${value.text} onChange=${(event) => write(event.target.value)}>
              <option value="">NULL</option>
              <option value="true">true</option>
              <option value="false">false</option>
            </select>
          `
          : html`
            <input ...${field} value=${value.text} placeholder=${value.none ? "NULL" : ""} autocomplete="off" spellcheck=${false}
              pattern=${kind === "VARBINARY" ? "([0-9A-Fa-f]{2})*" : undefined} title=${kind === "VARBINARY" ? "two hex digits for each byte" : undefined}
              onInput=${(event) => write(event.target.value)} onChange=${left} />
          `}
        ${kind === "TIMESTAMP" && html`<button type="button" aria-label=${`Now for ${name}`} onClick=${() => write("NOW")}>Now</button>`}
        ${!needed && kind !== "BOOL" && html`
          <label class="row">
            <input type="checkbox" aria-label=${`${name} is NULL`} checked=${value.none} disabled=${value.none && !isText(type)}
              onChange=${(event) => change({ text: "", none: event.target.checked })} />NULL
          </label>
        `}
      </div>
      ${wrong && html`<p id=${about} class="wrong" role="alert">${wrong.message}${wrong.hint && ` Hint: ${wrong.hint}`}</p>`}
    </div>
  `;
}
