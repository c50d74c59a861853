/**
 * Bundles the script and the style sheet of one set of pages, and writes them to standard output as JSON:
 * `bun build.ts console`. It runs in a process of its own, so that the server neither waits for it nor keeps the memory
 * that it takes.
 */
import { join } from "node:path";
import type { BunPlugin } from "bun";
import type { Bundle, BundleName } from "./bundle.ts";

/** From `src`. */
const ENTRY_POINTS: Readonly<Record<BundleName, readonly string[]>> = {
  console: ["console/main.tsx", "console/console.css"],
  docs: ["docs-site/browser/main.ts", "docs-site/browser/docs.css"],
};

/** Schemas are shared with the server. What they import of Node is never called in a browser. */
const withoutNode: BunPlugin = {
  name: "without-node",
  setup(build) {
    build.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "absent" }));
    build.onLoad({ filter: /.*/, namespace: "absent" }, () => ({
      contents: "export const crc32 = undefined; export const hash = undefined;",
      loader: "js",
    }));
  },
};

function entryPoints(): string[] {
  const paths = Object.entries(ENTRY_POINTS).find(([name]) => name === process.argv[2])?.[1];
  if (paths === undefined) throw new Error(`There is no bundle called ${process.argv[2]}`);
  return paths.map((path) => join(import.meta.dir, "..", path));
}

const { outputs } = await Bun.build({
  entrypoints: entryPoints(),
  target: "browser",
  minify: true,
  jsx: { runtime: "automatic", importSource: "preact", development: false },
  plugins: [withoutNode],
});

async function textOf(extension: ".js" | ".css"): Promise<string> {
  const output = outputs.find(({ path }) => path.endsWith(extension));
  if (output === undefined) throw new Error(`The bundle has no ${extension} file`);
  return output.text();
}

const bundle: Bundle = { script: await textOf(".js"), style: await textOf(".css") };
await Bun.write(Bun.stdout, JSON.stringify(bundle));
