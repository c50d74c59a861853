/*
 * Bundles a script and a style sheet, such as main.tsx and console.css, and writes them to standard output as JSON. It
 * runs in a process of its own, so that the server neither waits for it nor keeps the memory that it takes.
 */

import type { Bundle } from "./bundle.ts";

const { outputs } = await Bun.build({
  entrypoints: process.argv.slice(2),
  target: "browser",
  minify: true,
  jsx: { runtime: "automatic", importSource: "preact", development: false },
});

const [script, style] = await Promise.all(outputs.map((output) => output.text()));
if (script === undefined || style === undefined || outputs.length > 2)
  throw new Error(`expected a script and a style sheet, but the number of files is ${outputs.length}`);
await Bun.write(Bun.stdout, JSON.stringify({ script, style } satisfies Bundle));
