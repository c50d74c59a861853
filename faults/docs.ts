import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inMarkdown } from "./report.ts";
import type { Result } from "./scenario.ts";

const PAGE = join(import.meta.dir, "../docs/reliability.md");
const FIGURES =
  /(<!-- figures: written by `npm run faults -- --docs` -->\n)[\s\S]*?(<!-- end of figures -->)/;

/** Puts a run's figures where the documentation shows them; the words around them stay. */
export function publish(results: readonly Result[], ground: readonly string[]): void {
  const text = readFileSync(PAGE, "utf8");
  if (!FIGURES.test(text)) throw new Error("docs/reliability.md has no place for figures");
  const figures = inMarkdown(results, ground);
  writeFileSync(
    PAGE,
    text.replace(FIGURES, (_match, begin: string, end: string) => `${begin}\n${figures}\n${end}`),
  );
  Bun.spawnSync([process.execPath, "fmt", PAGE]);
}
