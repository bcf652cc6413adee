// The frame of every page: who is logged in, the list of pages, and the page itself.
import { html, signal, useEffect } from "../../vendor/preact.js";
import { setPageCommands } from "../core/commands.js";
import { announce, announced } from "../core/live.js";
import { go, linkTo, route } from "../core/router.js";
import { user, who } from "../core/session.js";
import { Account } from "./account.js";
import { Palette, openPalette } from "./palette.js";
import { LogIn } from "../pages/login.js";
import { PAGES } from "../pages/pages.js";

const menuOpen = signal(false);

setPageCommands(
  PAGES.map((page) => ({
    name: `Go to ${page.title}`,
    keys: `g ${page.key}`,
    run: () => go(page.path),
  })),
);

export function Shell() {
  useEffect(() => listenForKeys(), []);
  if (who.value === null) return html`<p class="waiting" role="status">Asking who is logged in …</p>`;
  if (user.value === null) return html`<${LogIn} /><${LiveRegion} />`;
  const page = PAGES.find(({ path }) => path === (route.value[0] ?? "")) ?? null;
  const key = route.value.join("/");
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="bar">
      <button class="menu" aria-expanded=${menuOpen.value} aria-controls="pages"
        onClick=${() => (menuOpen.value = !menuOpen.value)}>Menu</button>
      <a class="brand" href=${linkTo("")}>Penstock</a>
      <${Pages} current=${page} />
      <button class="quiet" onClick=${openPalette}>Commands <kbd>Ctrl K</kbd></button>
      <${Account} />
    </header>
    <main id="main" tabindex="-1">
      ${page ? html`<${Shown} key=${key} page=${page} parts=${route.value.slice(1)} />` : html`<${Missing} />`}
    </main>
    <${Palette} />
    <${LiveRegion} />
  `;
}

function Pages({ current }) {
  return html`
    <nav id="pages" aria-label="Pages" class=${menuOpen.value ? "open" : ""}>
      ${PAGES.map(
        (page) => html`
          <a href=${linkTo(page.path)} aria-current=${page === current ? "page" : undefined}
            onClick=${() => (menuOpen.value = false)}>${page.title}</a>
        `,
      )}
    </nav>
  `;
}

function Shown({ page, parts }) {
  useEffect(() => {
    document.title = [...parts.slice().reverse(), page.title, "Penstock"].join(" – ");
    announce(page.title);
  }, []);
  return html`<${page.component} parts=${parts} />`;
}

function Missing() {
  return html`
    <h1>There is no such page</h1>
    <p>The address names none. <a href=${linkTo("")}>Home</a> is always there.</p>
  `;
}

function LiveRegion() {
  return html`<div class="unseen" role="status" aria-live="polite">${announced.value}</div>`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/** Ctrl+K opens the palette; `g` and a letter go to a page, unless somebody writes. */
function listenForKeys() {
  let afterG = false;
  function press(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && user.value) {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.composedPath()[0])) return;
    const page = afterG ? PAGES.find(({ key }) => key === event.key) : null;
    afterG = event.key === "g";
    if (page && user.value) go(page.path);
  }
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}

function writes(target) {
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}
