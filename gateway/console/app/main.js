// Starts the console.
import { html, render } from "../vendor/preact.js";
import { learnWho } from "./core/session.js";
import { Shell } from "./parts/shell.js";

render(html`<${Shell} />`, document.getElementById("app"));
learnWho();
