import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chartOf } from "./chart.ts";
import { tablesOf } from "./report.ts";
import type { Results } from "./results.ts";
import { PROJECT } from "./stage.ts";
import { preface } from "./preface.ts";
import { markdownTable } from "./table.ts";

const BEGIN = "<!-- figures: written by `npm run bench -- --docs` -->";
const END = "<!-- end of figures -->";

/** Puts a run's figures where the documentation shows them; the words around them stay. */
export function publish(results: Results): void {
  const page = join(PROJECT, "docs/performance.md");
  const text = readFileSync(page, "utf8");
  const [before, rest] = split(text, BEGIN);
  const [, after] = split(rest, END);
  const figures = [
    preface(results)
      .map((line) => `- ${line}`)
      .join("\n"),
    ...tablesOf(results).map(markdownTable),
  ].join("\n\n");
  writeFileSync(page, `${before}${BEGIN}\n\n${figures}\n${END}${after}`);
  writeFileSync(join(PROJECT, "docs/performance.svg"), chartOf(results));
  Bun.spawnSync([process.execPath, "fmt", page], { cwd: PROJECT });
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`docs/performance.md lacks the line ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
