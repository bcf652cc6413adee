// What may come next while a statement is written: names of the schema, functions, words.
import { syntaxTree } from "../../../vendor/codemirror.js";
import { columns, databases, tables } from "../../core/schema.js";
import { quoteName } from "../../core/query.js";

const PATH = /(?:(?:`[^`]*`|[\p{L}_][\p{L}\d_]*)\.)?`?[\p{L}\d_]*$/u;
const MENTIONED = /\b(?:from|join|into|using|update|describe|table)\s+((?:`[^`]+`|[\p{L}_][\p{L}\d_]*)(?:\.(?:`[^`]+`|[\p{L}_][\p{L}\d_]*))?)/giu;
const PLAIN = /^[\p{L}_][\p{L}\d_]*$/u;

/** A source of completions for CodeMirror; `database()` is the one that is selected. */
export function completionsOf(dialect, database) {
  const clauses = new Set(dialect.clauses.map(({ name }) => name));
  const words = [
    ...dialect.clauses.map(({ name, example }) => ({ label: name, type: "keyword", detail: example })),
    ...dialect.keywords.filter((word) => !clauses.has(word)).map((label) => ({ label, type: "keyword" })),
    ...dialect.types.map((label) => ({ label, type: "type" })),
    ...dialect.functions.map(functionOption),
  ];
  return async function complete(context) {
    if (isText(context)) return null;
    const found = context.matchBefore(PATH);
    if (!found || (found.from === found.to && !context.explicit)) return null;
    const [left, right] = splitPath(found.text);
    const text = context.state.doc.toString();
    if (right !== null) {
      const options = await memberOptions(left, text, database());
      return { from: found.to - right.length, options, validFor: /^`?[\p{L}\d_]*$/u };
    }
    const names = await schemaOptions(text, database());
    return { from: found.from, options: [...names, ...words], validFor: /^`?[\p{L}\d_]*$/u };
  };
}

function isText(context) {
  const name = syntaxTree(context.state).resolveInner(context.pos, -1).name;
  return /String|Comment/.test(name);
}

function functionOption({ name, signature, doc, where }) {
  const more = where === "everywhere" ? "" : ` (${where} only)`;
  return { label: name, type: "function", detail: signature.replace(name, ""), info: doc + more };
}

function splitPath(text) {
  const dot = text.lastIndexOf(".");
  return dot < 0 ? [text, null] : [bare(text.slice(0, dot)), text.slice(dot + 1)];
}

function bare(name) {
  return name.startsWith("`") ? name.slice(1, -1).replaceAll("``", "`") : name;
}

function option(name, type, detail, boost) {
  return { label: name, apply: PLAIN.test(name) ? name : quoteName(name), type, detail, boost };
}

/** Tables of a database, or columns of a table, behind `name.`. */
async function memberOptions(name, text, selected) {
  if ((await quietly(databases)).includes(name)) {
    return (await quietly(() => tables(name))).map((table) => option(table.name, "class", table.kind, 2));
  }
  const meant = mentioned(text, selected).find((one) => one.table === name);
  const where = meant ?? { database: selected, table: name };
  return where.database ? columnOptions(where.database, where.table) : [];
}

async function schemaOptions(text, selected) {
  const named = mentioned(text, selected);
  const lists = await Promise.all([
    ...named.map(({ database, table }) => columnOptions(database, table)),
    selected ? quietly(() => tables(selected)).then((all) => all.map((t) => option(t.name, "class", t.kind, 2))) : [],
    quietly(databases).then((all) => all.map((name) => option(name, "namespace", "database", 1))),
  ]);
  return lists.flat();
}

async function columnOptions(database, table) {
  const found = await quietly(() => columns(database, table));
  return found.map(({ name, type, tag }) => option(name, "property", tag ? `${type}, tag` : type, 3));
}

/** Tables that the text names: `{database, table}`. */
function mentioned(text, selected) {
  const found = [...text.matchAll(MENTIONED)].map(([, path]) => {
    const [left, right] = splitPath(path);
    return right === null ? { database: selected, table: bare(left) } : { database: left, table: bare(right) };
  });
  return found.filter(({ database }) => database);
}

/** An editor goes on without a list that cannot be had. */
async function quietly(question) {
  try {
    return await question();
  } catch {
    return [];
  }
}
