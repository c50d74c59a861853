/** `npm run bench`: see --help. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { judge } from "./bars.ts";
import { chartOf } from "./chart.ts";
import { publish } from "./docs.ts";
import { installPeers, requireTools } from "./install.ts";
import { HELP, Misuse, type Options, readOptions } from "./options.ts";
import { preface } from "./preface.ts";
import { tablesOf } from "./report.ts";
import type { Results } from "./results.ts";
import { longestMs, measureAll } from "./session.ts";
import { clearStage, openStage } from "./stage.ts";
import { plainTable } from "./table.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);

async function measure(options: Options): Promise<Results> {
  requireTools();
  if (options.peers.length > 0) installPeers(say);
  const stage = openStage();
  const leave = (code: number) => {
    clearStage(stage);
    process.exit(code);
  };
  process.on("SIGINT", () => leave(130));
  process.on("SIGTERM", () => leave(143));
  const tooLong = setTimeout(() => {
    say("bench: gave up, the run took several times as long as it should");
    leave(1);
  }, longestMs(options));
  try {
    return await measureAll(options, stage);
  } finally {
    clearTimeout(tooLong);
    clearStage(stage);
  }
}

function save(results: Results, path: string): void {
  writeFileSync(path, `${JSON.stringify(results, undefined, 1)}\n`);
  writeFileSync(path.replace(/(\.json)?$/, ".svg"), chartOf(results));
  say(`Figures in ${path}, the chart beside it.`);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  const { from, json = join(import.meta.dir, "results.json"), docs, check } = options;
  const results =
    from === undefined ? await measure(options) : (JSON.parse(readFileSync(from, "utf8")) as Results);
  process.stdout.write(`${preface(results).join("\n")}\n`);
  process.stdout.write(tablesOf(results).map(plainTable).join(""));
  if (from === undefined) save(results, json);
  if (docs) publish(results);
  const outcomes = judge(results).filter(({ reached }) => reached !== undefined);
  return check && (outcomes.length === 0 || outcomes.some(({ reached }) => reached === false)) ? 1 : 0;
}

try {
  process.exit(await main());
} catch (error) {
  const isMisuse = error instanceof Misuse;
  say(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(isMisuse ? 2 : 1);
}
