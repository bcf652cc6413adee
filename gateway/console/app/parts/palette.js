// The palette: every command by its name, without the mouse.
import { html, signal, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { commands } from "../core/commands.js";
import { Dialog } from "./dialog.js";

const open = signal(false);

export function openPalette() {
  open.value = true;
}

export function Palette() {
  return open.value ? html`<${OpenPalette} />` : null;
}

function OpenPalette() {
  const typed = useSignal("");
  const at = useSignal(0);
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const close = () => (open.value = false);
  const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands.value.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  const chosen = Math.min(at.value, found.length - 1);
  function run(command) {
    close();
    command?.run();
  }
  function press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length > 0) {
      event.preventDefault();
      at.value = (chosen + step + found.length) % found.length;
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  }
  return html`
    <${Dialog} title="Commands" close=${close}>
      <input ref=${field} role="combobox" aria-expanded="true" aria-controls="commands" aria-label="Command"
        aria-activedescendant=${found.length > 0 ? `command-${chosen}` : undefined}
        value=${typed.value} onKeyDown=${press}
        onInput=${(event) => {
          typed.value = event.target.value;
          at.value = 0;
        }} />
      <ul id="commands" role="listbox" aria-label="Commands">
        ${found.map(
          (command, place) => html`
            <li id=${`command-${place}`} role="option" aria-selected=${place === chosen} onClick=${() => run(command)}>
              <span>${command.name}</span>${command.keys && html`<kbd>${command.keys}</kbd>`}
            </li>
          `,
        )}
      </ul>
      ${found.length === 0 && html`<p>No command has these words.</p>`}
    <//>
  `;
}
