// Builds the page into the Python package, where the server finds it: node build.mjs
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../src/agent_server/built_page");

const bundle = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx", style: "src/style.css" },
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof", // the licences of what is bundled go with it
  define: { "process.env.NODE_ENV": '"production"' },
});

// A name with the hash of the content may be kept by browsers for ever: another content has another name.
const names = new Map();
await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
for (const file of bundle.outputFiles) {
  const [, stem, ending] = /([a-z]+)\.(js|css)$/.exec(file.path);
  const hash = createHash("sha256").update(file.contents).digest("hex").slice(0, 12);
  const name = `${stem}-${hash}.${ending}`;
  names.set(`${stem}.${ending}`, name);
  await writeFile(join(target, name), file.contents);
}
for (const icon of ["icon.svg", "icon192.png", "icon512.png", "iconmaskable.png"]) {
  await writeFile(join(target, icon), await readFile(join(here, "src", icon)));
}
await writeFile(join(target, "page.webmanifest"), await readFile(join(here, "src/page.webmanifest")));
const files = ["/page/icon.svg", "/page/page.webmanifest", ...[...names.values()].map((name) => `/page/${name}`)];
const worker = await readFile(join(here, "src/worker.js"), "utf8");
const shell = createHash("sha256").update(files.join() + worker).digest("hex").slice(0, 12);
await writeFile(
  join(target, "worker.js"),
  worker.replace("/* files of the build */", files.map((file) => JSON.stringify(file)).join(", ")).replace("HASH", shell),
);
let html = await readFile(join(here, "src/index.html"), "utf8");
for (const [stem, name] of names) html = html.replaceAll(`/page/${stem}`, `/page/${name}`);
await writeFile(join(target, "index.html"), html); // last: a folder without it is no page
