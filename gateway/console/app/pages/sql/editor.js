// The editor. It lives in a shadow root: there CodeMirror brings its styles without a <style>
// element, which the page's policy forbids.
import {
  EditorState,
  EditorView,
  HighlightStyle,
  Prec,
  SQLDialect,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  forceLinting,
  highlightActiveLine,
  history,
  historyKeymap,
  indentOnInput,
  keymap,
  lineNumbers,
  lintKeymap,
  placeholder,
  sql,
  syntaxHighlighting,
  tags,
} from "../../../vendor/codemirror.js";
import { checking } from "./checking.js";
import { completionsOf } from "./completion.js";

const THEME = EditorView.theme({
  "&": { height: "100%", fontSize: "14px", color: "var(--ink)", backgroundColor: "var(--raised)" },
  ".cm-scroller": { fontFamily: "var(--mono)", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--soft)", border: "none" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--mark) 45%, transparent)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "var(--mark)",
  },
  ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line)", color: "var(--ink)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--mark)", color: "var(--ink)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "22rem" },
  // CodeMirror draws its squiggle as a data: image, which the page's policy forbids
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--bad)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-placeholder": { color: "var(--soft)" },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--busy)" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--accent)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--soft)", fontStyle: "italic" },
]);

/**
 * Make an editor in *host*.
 *
 * @param dialect what /v1/dialect says
 * @param database returns the database that is selected
 * @param changed is told the text whenever it changes
 * @param keys what is called for a key, by the key's name
 * @param hint stands where no text is
 */
export function makeEditor(host, { dialect, database, changed, keys, hint }) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const extensions = [
    Prec.highest(keymap.of(Object.entries(keys).map(([key, act]) => ({ key, run: () => (act(), true) })))),
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    placeholder(hint),
    sql({ dialect: dialectOf(dialect) }).language,
    autocompletion({ override: [completionsOf(dialect, database)] }),
    checking(database),
    syntaxHighlighting(COLOURS),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.lineWrapping,
    EditorView.domEventHandlers({ beforeinput: replaceSelected }),
    EditorView.contentAttributes.of({ "aria-label": "Statement" }),
    EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    THEME,
  ];
  const start = (doc) => EditorState.create({ doc, extensions });
  const view = new EditorView({ state: start(""), parent: root, root });
  return {
    /** Show what another tab holds: its state of before, or its text. */
    show: (state, text) => view.setState(state ?? start(text)),
    state: () => view.state,
    selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
    cursor: () => view.state.selection.main.head,
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text));
      view.focus();
    },
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    check: () => forceLinting(view),
    focus: () => view.focus(),
    close: () => view.destroy(),
  };
}

/**
 * Write over a selection ourselves: Chromium's own way carries styles of what goes into the page,
 * which the page's policy forbids and the browser's console complains of.
 */
function replaceSelected(event, view) {
  const { from, to, empty } = view.state.selection.main;
  const text = event.data;
  if (event.inputType !== "insertText" || empty || !text || view.composing) return false;
  event.preventDefault();
  const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handler) => handler(view, from, to, text, insert))) view.dispatch(insert());
  return true;
}

function dialectOf({ keywords, types, functions }) {
  const words = (list) => list.join(" ").toLowerCase();
  return SQLDialect.define({
    keywords: words(keywords),
    types: words(types),
    builtin: words(functions.map(({ name }) => name)),
    identifierQuotes: "`",
    doubleQuotedStrings: true,
    backslashEscapes: true,
    hashComments: false,
  });
}
