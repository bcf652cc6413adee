// Makes gateway/console/vendor from npm: one file a bundle, all licences, and a manifest with
// versions and digests. Run it after changing a version in package.json:
//
//     cd .ci/console && npm install --ignore-scripts && node refresh.mjs
//
// Nobody needs Node to build, install or run Penstock: what this makes is in the repository.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, rmSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = join(HERE, "../../gateway/console/vendor");
const BUNDLES = ["preact", "codemirror", "dagre", "uplot", "arrow"];

/** The npm package that a file of node_modules belongs to. */
function packageOf(path) {
  const inside = path.split("node_modules/").at(-1).split("/");
  return inside[0].startsWith("@") ? `${inside[0]}/${inside[1]}` : inside[0];
}

function aboutOf(name) {
  return JSON.parse(readFileSync(join(HERE, "node_modules", name, "package.json")));
}

/** *name* and all that it needs: a package may hold those in its own file already, but for types. */
function withNeeds(name) {
  const needs = Object.keys(aboutOf(name).dependencies ?? {}).filter((one) => !one.startsWith("@types/"));
  return [name, ...needs.flatMap(withNeeds)];
}

function describe(name) {
  const folder = join(HERE, "node_modules", name);
  const { version, license } = aboutOf(name);
  const files = readdirSync(folder);
  const licence = files.find((entry) => /^licen[cs]e/i.test(entry));
  if (!licence) throw new Error(`${name} has no licence file`);
  const notices = files.filter((entry) => /^notice/i.test(entry));
  const texts = [licence, ...notices].map((file) => readFileSync(join(folder, file), "utf8").trim());
  return { name, version, license, text: texts.join("\n\n") };
}

async function bundle(name) {
  const made = await build({
    entryPoints: [join(HERE, `${name}.js`)],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    metafile: true,
    write: false,
    absWorkingDir: HERE,
  });
  const inputs = Object.keys(made.metafile.inputs).filter((path) => path.includes("node_modules/"));
  const packages = [...new Set(inputs.map(packageOf).flatMap(withNeeds))].sort();
  return { body: made.outputFiles[0].contents, packages };
}

if (existsSync(TARGET)) rmSync(TARGET, { recursive: true });
mkdirSync(TARGET, { recursive: true });
const manifest = { files: [] };
const licences = new Map();
for (const name of BUNDLES) {
  const { body, packages } = await bundle(name);
  writeFileSync(join(TARGET, `${name}.js`), body);
  const described = packages.map(describe);
  for (const { text, ...about } of described) licences.set(about.name, { about, text });
  manifest.files.push({
    file: `${name}.js`,
    sha256: createHash("sha256").update(body).digest("hex"),
    bytes: body.length,
    gzip_bytes: gzipSync(body, { level: 9 }).length,
    packages: described.map(({ name, version, license }) => ({ name, version, license })),
  });
}
writeFileSync(join(TARGET, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
const texts = [...licences.values()].map(
  ({ about, text }) => `${about.name} ${about.version} (${about.license})\n\n${text}\n`,
);
writeFileSync(join(TARGET, "LICENSES.txt"), texts.join(`\n${"-".repeat(72)}\n\n`));
