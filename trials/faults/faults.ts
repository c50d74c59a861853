/** `npm run faults`: see --help. */
import { integer, isGiven, names, runCommand } from "../harness/command-line.ts";
import { machineNow } from "../harness/machine.ts";
import { databaseVersions } from "../harness/programs.ts";
import { countTexts } from "../harness/statistics.ts";
import { type Table, tableOf } from "../harness/table.ts";
import { type Result, resultText, runTrials, trialLines } from "../harness/trials.ts";
import type { Figures } from "./figures.ts";
import { runScenario, type Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const SCENARIO_TIMEOUT_MS = 120_000;
const MAX_SEED = 2 ** 31;

const HELP = `Usage: npm run faults [-- OPTIONS]

Injects faults under load into real servers of its own and measures what clients notice: errors, the longest response time,
the recovery time, creates lost or done twice. Exits with 1 if a promise is broken. Takes some six minutes.

  --only LIST   Some of these scenarios, with commas between (default: all)
${trialLines(SCENARIOS)}
  --seed N      For what is left to chance (default: by chance, printed)
  --docs        Also write the figures to trials/faults/results.md
  --help        Show this
`;

async function runWithTimeout(scenario: Scenario, seed: number) {
  const timeout = Bun.sleep(SCENARIO_TIMEOUT_MS).then(() => {
    throw new Error(`not finished after ${SCENARIO_TIMEOUT_MS / 1_000} s`);
  });
  return await Promise.race([runScenario(scenario, seed), timeout]);
}

function tablesOf(results: readonly Result<Figures>[]): Table[] {
  const date = new Date().toISOString().slice(0, 10);
  const tables = [
    {
      ...tableOf("What clients noticed", results, COLUMNS),
      note: `${machineNow()} at the end; ${databaseVersions()}; measured on ${date}`,
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

await runCommand({
  name: "faults",
  help: HELP,
  flags: {
    only: names(SCENARIOS.map(({ name }) => name)),
    docs: isGiven,
    seed: integer(undefined, MAX_SEED),
  },
  maxMinutes: 8,
  main: async ({ only, docs, seed = 1 + Math.floor(Math.random() * MAX_SEED) }) =>
    runTrials({
      trials: SCENARIOS,
      only,
      run: (scenario) => runWithTimeout(scenario, seed),
      tablesOf,
      docs: docs && { file: "trials/faults/results.md", name: "figures" },
    }),
});
