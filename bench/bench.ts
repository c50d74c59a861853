/** `npm run bench`: see --help. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../harness/child.ts";
import { limitRunTime, runCommand, UsageError } from "../harness/command-line.ts";
import { replaceSection } from "../harness/document-section.ts";
import { chooseCores, describeMachine, pinThisProcessTo } from "../harness/machine.ts";
import { find, NGINX } from "../harness/programs.ts";
import { Progress } from "../harness/progress.ts";
import { bulletList, markdownTable, plainTable } from "../harness/table.ts";
import { requireWrk } from "../harness/wrk.ts";
import { installPeers } from "./candidate-servers.ts";
import { CANDIDATES, type CandidateId, describeVersions, isPeer } from "./candidates.ts";
import { chartOf } from "./chart.ts";
import { compare, comparisonSteps } from "./comparison.ts";
import { HELP, type Options, readOptions, type Section } from "./options.ts";
import { conditionsOf, detailTables, growthLines, summaryTable, targetsTable } from "./tables.ts";
import type { Results } from "./results.ts";
import { measureGrowth, growthSteps } from "./growth.ts";
import { judge } from "./targets.ts";

const PETS = 100_000;

async function measure(options: Options): Promise<Results> {
  requireWrk();
  const { workloads, peers, seconds, rounds } = options;
  if (peers.length > 0) installPeers();
  const machine = describeMachine();
  const cores = chooseCores();
  // Off the server's core.
  if (cores) pinThisProcessTo(cores.load);

  const measures = (section: Section) => options.sections.includes(section);
  const omittedNginx = !options.nginx
    ? "not in a quick run"
    : find(NGINX) === undefined
      ? "nginx is not installed (Debian, Ubuntu: apt-get install nginx-light)"
      : undefined;
  const ids = (Object.keys(CANDIDATES) as CandidateId[]).filter(
    (id) => !(id === "nginx" && omittedNginx) && (!isPeer(id) || peers.includes(id)),
  );
  const compares = workloads.length > 0 || measures("start");
  const comparison = { ids, workloads, pets: PETS, isPaced: measures("paced") };
  const steps =
    (compares ? comparisonSteps(comparison, rounds) : 0) +
    (measures("growth") ? growthSteps(rounds) : 0) +
    (measures("limiter") ? 1 : 0);
  limitRunTime(steps * (seconds + 5) * 1_000 + 600_000);
  const progress = new Progress(steps, process.stderr);
  const run = { cores, seconds, rounds, progress };

  const compared = compares ? await compare(run, comparison) : { cells: [], servers: [], paced: [] };
  const growth = measures("growth") ? await measureGrowth(run) : [];
  const limiter = measures("limiter") ? await measureLimiter(progress) : undefined;
  progress.finish();
  return {
    format: 2,
    takenAt: new Date().toISOString(),
    machine,
    versions: describeVersions(ids),
    pinned: cores !== undefined,
    seconds,
    rounds,
    pets: PETS,
    ...compared,
    growth,
    ...(limiter && { limiter }),
    omitted: omittedNginx === undefined ? [] : [{ id: "nginx", reason: omittedNginx }],
  };
}

/** Its exit code only says whether it reaches its own targets. */
async function measureLimiter(progress: Progress): Promise<NonNullable<Results["limiter"]>> {
  progress.step("authentication and rate limit alone, with 1, 1,000 and 1,000,000 keys");
  const child = new Child([process.execPath, join(import.meta.dir, "rate-limiter.ts"), "--json"]);
  await child.ended;
  const json = /^\{[\s\S]*^\}/m.exec(child.output)?.[0];
  if (json === undefined) throw new Error(`the rate limiter's benchmark failed: ${child.output}`);
  return JSON.parse(json);
}

function readResults(path: string): Results {
  const results: Results = JSON.parse(readFileSync(path, "utf8"));
  if (results.format !== 2)
    throw new UsageError(`--from: ${path} was written by another version of the benchmark`);
  return results;
}

function writeDocs(results: Results): void {
  const conditions = bulletList(conditionsOf(results));
  replaceSection("docs/performance.md", "summary", markdownTable(summaryTable(results)));
  replaceSection("docs/performance.md", "growth", bulletList(growthLines(results)));
  replaceSection("bench/results.md", "targets", `${conditions}\n\n${markdownTable(targetsTable(results))}`);
  replaceSection("bench/results.md", "figures", detailTables(results).map(markdownTable).join("\n"));
  writeFileSync(join(import.meta.dir, "../docs/performance.svg"), chartOf(results));
}

await runCommand("bench", async (args) => {
  const options = readOptions(args);
  if (options === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const { from, json = join(import.meta.dir, "results.json"), docs, check } = options;
  const results = from === undefined ? await measure(options) : readResults(from);
  process.stdout.write(`${conditionsOf(results).join("\n")}\n`);
  process.stdout.write([targetsTable(results), ...detailTables(results)].map(plainTable).join(""));
  if (from === undefined) {
    writeFileSync(json, `${JSON.stringify(results, undefined, 1)}\n`);
    writeFileSync(json.replace(/(\.json)?$/, ".svg"), chartOf(results));
    process.stderr.write(`Figures in ${json}, the chart beside it.\n`);
  }
  if (docs) writeDocs(results);
  const outcomes = judge(results).filter(({ reached }) => reached !== undefined);
  return check && (outcomes.length === 0 || outcomes.some(({ reached }) => reached === false)) ? 1 : 0;
});
