/* Runs `npx bun trials/durability/durability.ts`; its --help describes the options. */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, names, runCommand } from "../harness/command-line.ts";
import { executable, provide, STRACE } from "../harness/programs.ts";
import { Random } from "../harness/random.ts";
import { countsOf, countTexts } from "../harness/statistics.ts";
import { tableOf } from "../harness/table.ts";
import { type Result, resultText, runTrials, trialLines } from "../harness/trials.ts";
import { Disk } from "./disk.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { readTrace, straceTo, type SystemCall } from "./trace.ts";

const HELP = `Usage: npx bun trials/durability/durability.ts [OPTIONS]

Records with strace what a process writes to SQLite's files, backups, imports and exports, and when it waits for the disk.
Then plays the record up to every point, with what a power failure leaves there: what was synced alone, everything, and
what chance keeps of the rest. What was acknowledged, and what a client has read, must be there, and every database whole.
Exits with 1 otherwise.
It needs Linux and the package strace.

  --points N    Points of each scenario, chosen by the seed if there are more (default: 1500)
  --seed N      The seed of chance (default: 1)
  --only LIST   Some of these, with commas between (default: all):
${trialLines(SCENARIOS)}
  --help        Show this
`;

const TRACE_MS = 30_000;

/** Reads the record when it is complete: the process may have ended before strace has written it. */
async function recordOf(file: string): Promise<SystemCall[]> {
  const deadline = performance.now() + TRACE_MS;
  for (;;) {
    const calls = readTrace(file);
    if (calls.at(-1)?.name === "exit_group" || performance.now() > deadline)
      // The command is the last process that ends; others were those of its shell.
      return calls.filter(({ name }, index) => name !== "exit_group" || index === calls.length - 1);
    await Bun.sleep(100);
  }
}

async function runScenario(scenario: Scenario, maxPoints: number, seed: number) {
  const directory = temporaryDirectory("durability");
  const root = join(directory, "root");
  mkdirSync(root);
  await scenario.prepare(root);
  const disk = new Disk(root);
  const trace = join(directory, "trace");
  await scenario.run(root, straceTo(executable(STRACE), trace));
  const calls = await recordOf(trace);
  const points = changingCalls(new Disk(root), calls, scenario);
  if (points.size === 0) throw new Error("nothing was recorded");
  const random = new Random(seed);
  const figures = { calls: calls.length, points: points.size, images: 0, acknowledged: 0 };
  const share = maxPoints / points.size;
  const acknowledged = new Set<string>();
  const found: string[] = [];
  for (const [index, call] of calls.entries()) {
    disk.apply(call);
    for (const each of scenario.acknowledged(call)) acknowledged.add(each);
    if (!points.has(index) || random.fraction() > share) continue;
    for (const kept of ["least", "most", random] as const) {
      const image = join(directory, "image");
      mkdirSync(image);
      disk.writeTo(image, kept);
      found.push(
        ...(await scenario.check(image, acknowledged)).map((problem) => `${problem} (${nameOf(kept)})`),
      );
      rmSync(image, { recursive: true });
      figures.images++;
    }
  }
  figures.acknowledged = acknowledged.size;
  rmSync(directory, { recursive: true });
  const nothing = acknowledged.size === 0 ? ["nothing was acknowledged"] : [];
  return { problems: [...nothing, ...countTexts(countsOf(found))], figures };
}

const nameOf = (kept: "least" | "most" | Random) => (typeof kept === "string" ? `${kept} kept` : "some kept");

/** The calls after which a power failure leaves something else, or something else is acknowledged. */
function changingCalls(
  disk: Disk,
  calls: readonly SystemCall[],
  { acknowledged }: Scenario,
): ReadonlySet<number> {
  const changing = new Set<number>();
  for (const [index, call] of calls.entries()) {
    const before = disk.changes;
    disk.apply(call);
    if (disk.changes > before || acknowledged(call).length > 0) changing.add(index);
  }
  return changing;
}

type Figures = Awaited<ReturnType<typeof runScenario>>["figures"];
const figure = (name: keyof Figures) => (result: Result<Figures>) => `${result.figures?.[name] ?? 0}`;

await runCommand({
  name: "durability",
  help: HELP,
  flags: {
    points: integer(1_500, 100_000),
    seed: integer(1, 2 ** 31),
    only: names(SCENARIOS.map(({ name }) => name)),
  },
  maxMinutes: 10,
  async main({ points, seed, only }) {
    const missing = provide([STRACE]);
    if (missing.length > 0) throw new Error(missing.join("\n"));
    return runTrials({
      trials: SCENARIOS,
      only,
      run: (scenario) => runScenario(scenario, points, seed),
      tablesOf: (results) => [
        tableOf(`Power failures at every point of a record, with seed ${seed}`, results, {
          scenario: ({ title }) => title,
          "system calls": figure("calls"),
          points: figure("points"),
          "power failures": figure("images"),
          acknowledged: figure("acknowledged"),
          result: resultText,
        }),
      ],
    });
  },
});
