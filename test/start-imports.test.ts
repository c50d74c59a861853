import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const SOURCE = resolve(import.meta.dir, "../src");

/** What `petstore serve` loads on SQLite before its first response: these files and what they import statically. */
const LOADED = [
  "cli/main.ts",
  "cli/serve.ts",
  "app.ts",
  "store/sqlite/process-lock.ts",
  "store/sqlite/store.ts",
  "store/sqlite/usage-store.ts",
  "rate-limit/memory/memory-rate-limiter.ts",
];

/** Each loads the code of streams, which takes 9 ms and more. */
const SLOW = /^node:(?:crypto|http|https|net|readline|stream|tls|tty|worker_threads|zlib)\b/;

const transpiler = new Bun.Transpiler({ loader: "ts" });

/** The files by the built-in modules and packages that they import; types are not imported. */
function importsFrom(files: readonly string[]): Map<string, string[]> {
  const packages = new Map<string, string[]>();
  const seen = new Set<string>();
  const queue = files.map((file) => join(SOURCE, file));
  for (const file of queue) {
    if (seen.has(file) || !file.endsWith(".ts")) continue;
    seen.add(file);
    for (const { path, kind } of transpiler.scanImports(readFileSync(file, "utf8"))) {
      if (kind !== "import-statement") continue;
      if (path.startsWith(".")) queue.push(resolve(dirname(file), path));
      else packages.set(path, [...(packages.get(path) ?? []), file]);
    }
  }
  return packages;
}

test("a server responds before it loads the code of streams", () => {
  const packages = importsFrom(LOADED);
  expect([...packages.keys()]).toContain("bun:sqlite");
  expect([...packages].filter(([name]) => SLOW.test(name))).toEqual([]);
});
