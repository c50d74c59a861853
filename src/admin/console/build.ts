/**
 * Bundles and compresses the console, and writes it to standard output as JSON. It runs in a process of its own, so
 * that the server neither waits for it nor keeps the memory that it takes.
 */
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { BunPlugin } from "bun";
import type { ConsoleFile, ConsoleFiles } from "./assets.ts";

/** The schemas of the admin API are shared with the server. What they import of Node is never called in a browser. */
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

const { outputs } = await Bun.build({
  entrypoints: ["main.tsx", "console.css"].map((name) => join(import.meta.dir, "../../console", name)),
  target: "browser",
  minify: true,
  jsx: { runtime: "automatic", importSource: "preact", development: false },
  plugins: [withoutNode],
});

async function fileOf(extension: ".js" | ".css"): Promise<ConsoleFile> {
  const output = outputs.find(({ path }) => path.endsWith(extension));
  if (output === undefined) throw new Error(`The bundle has no ${extension} file`);
  const bytes = new Uint8Array(await output.arrayBuffer());
  return {
    hash: Bun.SHA256.hash(bytes, "hex").slice(0, 16),
    br: brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }).toBase64(),
    gzip: gzipSync(bytes, { level: 9 }).toBase64(),
  };
}

const files: ConsoleFiles = { script: await fileOf(".js"), style: await fileOf(".css") };
await Bun.write(Bun.stdout, JSON.stringify(files));
