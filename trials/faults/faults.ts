/* Runs `npm run faults`; its --help describes the options. */

import { integer, isGiven, limitRunTime, names, runCommand, UsageError } from "../harness/command-line.ts";
import { machineNow } from "../harness/machine.ts";
import { databaseVersion, FAKETIME, OPENSSL, provide } from "../harness/programs.ts";
import { countTexts } from "../harness/statistics.ts";
import { type Table, tableOf } from "../harness/table.ts";
import { type Result, resultText, runTrials, trialLines } from "../harness/trials.ts";
import { composedTrial, runComposed } from "./composed/run.ts";
import type { Figures } from "./figures.ts";
import { runScenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const SCENARIO_TIMEOUT_MS = 120_000;
const MAX_SEED = 2 ** 31;
const MAX_SEEDS = 1_000;
const MAX_MINUTES = 8;
const MAX_SCENARIOS_MINUTES = 15;

const HELP = `Usage: npm run faults [-- OPTIONS]

Injects faults under load into real servers of its own and measures what clients notice: errors, the longest response time,
the recovery time, creates lost or done twice. Exits with 1 if a promise is broken. Takes some eight minutes.

  --only LIST   Some of these scenarios, with commas between (default: all)
${trialLines(SCENARIOS)}
  --seed N      For what is left to chance (default: by chance, printed)
  --compose     Instead of the scenarios, two to four faults together, drawn from the seed: three servers, PostgreSQL with
                a synchronous standby are killed, frozen, restarted or replaced, PostgreSQL's certificate
                expires or is untrusted, and servers' clocks are set, while clients and operators work.
                Everything that they did is judged; a broken promise is printed with the faults and the operations. A
                minute at most for each seed. Needs the package faketime for the clocks
  --seeds N     With --compose, the number of seeds from --seed on (default: 1)
  --docs        Also write the figures to trials/faults/results.md
  --help        Show this
`;

async function withTimeout<T>(running: Promise<T>): Promise<T> {
  const timeout = Bun.sleep(SCENARIO_TIMEOUT_MS).then(() => {
    throw new Error(`not finished after ${SCENARIO_TIMEOUT_MS / 1_000} s`);
  });
  return await Promise.race([running, timeout]);
}

function tablesOf(results: readonly Result<Figures>[]): Table[] {
  const date = new Date().toISOString().slice(0, 10);
  const tables = [
    {
      ...tableOf("What clients noticed", results, COLUMNS),
      note: `${machineNow()} at the end; ${databaseVersion()}; measured on ${date}`,
    },
    { title: "Log messages", header: ["fault", "messages"], rows: results.flatMap(logOf) },
    { title: "Further checks", header: ["fault", "observed"], rows: results.flatMap(notesOf) },
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

const cell = (format: (figures: Figures) => string) => (result: Result<Figures>) =>
  result.figures ? format(result.figures) : "–";

const COLUMNS = {
  fault: ({ title }: Result<Figures>) => title,
  requests: cell(({ requests }) => String(requests)),
  errors: cell(({ errors }) => countTexts(errors).join(", ") || "none"),
  "failed after retries": cell(({ failed }) => String(failed.length)),
  median: cell(({ medianMs }) => inMs(medianMs)),
  longest: cell(({ longestMs }) => inMs(longestMs)),
  "control server's longest": cell(({ longestControlMs }) => inMs(longestControlMs)),
  "control connection's longest": cell(({ longestTakeOverMs }) => inMs(longestTakeOverMs)),
  "longest fail-fast 503": cell(({ longestFailFastMs }) => inMs(longestFailFastMs)),
  "recovery time": cell(({ recoveryMs }) => inMs(recoveryMs)),
  creates: cell(({ creates }) => String(creates.acknowledged)),
  lost: cell(({ creates }) => String(creates.lost.length)),
  duplicated: cell(({ creates }) => String(creates.duplicated.length)),
  result: resultText,
};

function inMs(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function logOf({ title, figures }: Result<Figures>): string[][] {
  const lines = Object.entries(figures?.log ?? {}).map(([line, count]) => `${count} × “${line}”`);
  const servers = figures?.servers === 1 ? "1 server" : `${figures?.servers} servers`;
  return lines.length === 0 ? [] : [[`${title}; ${servers}`, lines.join(", ")]];
}

function notesOf({ title, figures }: Result<Figures>): string[][] {
  if (figures === undefined) return [];
  const unexpected = Object.entries(figures.outages).flatMap(([database, outages]) =>
    outages.unexpected === 0
      ? []
      : [`${database} was logged as unavailable ${outages.unexpected} × without a fault`],
  );
  return [...figures.notes, ...unexpected].map((note) => [title, note]);
}

/** Runs the faults of each seed, one seed after the other. */
function runSeeds(first: number, seeds: number): Promise<number> {
  const missing = provide([FAKETIME, OPENSSL]);
  if (missing.length > 0) throw new Error(missing.join("\n"));
  const trials = Array.from({ length: seeds }, (_, i) => composedTrial(first + i));
  return runTrials({ trials, run: (trial) => withTimeout(runComposed(trial)) });
}

await runCommand({
  name: "faults",
  help: HELP,
  flags: {
    only: names(SCENARIOS.map(({ name }) => name)),
    docs: isGiven,
    seed: integer(undefined, MAX_SEED),
    compose: isGiven,
    seeds: integer(undefined, MAX_SEEDS),
  },
  async main({ only, docs, seed = 1 + Math.floor(Math.random() * MAX_SEED), compose, seeds }) {
    if (compose && (only !== undefined || docs))
      throw new UsageError("--compose does not go with --only and --docs");
    if (!compose && seeds !== undefined) throw new UsageError("--seeds needs --compose");
    limitRunTime(compose ? MAX_MINUTES * (seeds ?? 1) : MAX_SCENARIOS_MINUTES);
    if (compose) return runSeeds(seed, seeds ?? 1);
    return runTrials({
      trials: SCENARIOS,
      only,
      run: (scenario) => withTimeout(runScenario(scenario, seed)),
      tablesOf,
      docs: docs && { file: "trials/faults/results.md", name: "figures" },
    });
  },
});
