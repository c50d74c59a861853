/** `npm run faults`: see --help. */
import {
  integer,
  isGiven,
  names,
  resultText,
  runCommand,
  runEach,
  UsageError,
} from "../harness/command-line.ts";
import { describeMachine, machineText } from "../harness/machine.ts";
import { databaseVersions } from "../harness/programs.ts";
import { markdownTable, plainTable, replaceSection, type Table } from "../harness/table.ts";
import type { Figures } from "./figures.ts";
import { type Result, runScenario, type Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const SCENARIO_TIMEOUT_MS = 120_000;
const MAX_SEED = 2 ** 31;

const NAMES = SCENARIOS.map(({ name }) => name);
const width = Math.max(...NAMES.map(({ length }) => length));

const HELP = `Usage: npm run faults [-- OPTIONS]

Injects faults under load into real servers of its own and measures what clients notice: errors, the longest response time,
the recovery time, creates lost or done twice. Exits with 1 if a promise is broken. Takes some six minutes.

  --only LIST   Some of these scenarios, with commas between (default: all)
${SCENARIOS.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n")}
  --seed N      For what is left to chance (default: by chance, printed)
  --docs        Also write the figures to trials/faults/results.md
  --help        Show this
`;

async function runWithTimeout(scenario: Scenario, seed: number): Promise<Result> {
  const timeout = Bun.sleep(SCENARIO_TIMEOUT_MS).then(() => {
    throw new Error(`not finished after ${SCENARIO_TIMEOUT_MS / 1_000} s`);
  });
  return await Promise.race([runScenario(scenario, seed), timeout]);
}

function environmentText(): string {
  const machine = describeMachine();
  const date = new Date().toISOString().slice(0, 10);
  return `${machineText(machine)}; load average at the end ${machine.load}; Bun ${Bun.version}, ${databaseVersions()}; measured on ${date}`;
}

function tablesOf(results: readonly Result[]): Table[] {
  const tables = [
    figuresTable(results),
    { title: "Log messages", header: ["fault", "messages"], rows: results.flatMap(logOf) },
    { title: "Further checks", header: ["fault", "observed"], rows: results.flatMap(notesOf) },
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

const COLUMNS: Readonly<Record<string, (figures: Figures) => string>> = {
  requests: ({ requests }) => String(requests),
  errors: ({ errors }) => listOf(errors) || "none",
  "failed after retries": ({ failed }) => String(failed.length),
  median: ({ medianMs }) => inMs(medianMs),
  longest: ({ longestMs }) => inMs(longestMs),
  "control server's longest": ({ longestControlMs }) => inMs(longestControlMs),
  "longest fail-fast 503": ({ longestFailFastMs }) => inMs(longestFailFastMs),
  "recovery time": ({ recoveryMs }) => inMs(recoveryMs),
  creates: ({ creates }) => String(creates.acknowledged),
  lost: ({ creates }) => String(creates.lost),
  duplicated: ({ creates }) => String(creates.duplicated),
};

function figuresTable(results: readonly Result[]): Table {
  return {
    title: "What clients noticed",
    note: environmentText(),
    header: ["fault", ...Object.keys(COLUMNS), "result"],
    rows: results.map((result) => {
      const { title, figures } = result;
      const cells = Object.values(COLUMNS).map((format) => (figures ? format(figures) : "–"));
      return [title, ...cells, resultText(result)];
    }),
  };
}

function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count} × ${name}`)
    .join(", ");
}

function inMs(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function logOf({ title, figures }: Result): string[][] {
  const lines = Object.entries(figures?.log ?? {}).map(([line, count]) => `${count} × “${line}”`);
  const servers = figures?.servers === 1 ? "1 server" : `${figures?.servers} servers`;
  return lines.length === 0 ? [] : [[`${title}; ${servers}`, lines.join(", ")]];
}

function notesOf({ title, figures }: Result): string[][] {
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
  flags: { only: names(NAMES), docs: isGiven, seed: integer(undefined, MAX_SEED) },
  maxMinutes: 8,
  async main({ only, docs, seed = 1 + Math.floor(Math.random() * MAX_SEED) }) {
    if (only !== undefined && docs)
      throw new UsageError("--docs needs all scenarios and does not go with --only");
    const scenarios = SCENARIOS.filter(({ name }) => only?.includes(name) ?? true);
    const results = await runEach(scenarios, (scenario) => runWithTimeout(scenario, seed));
    const tables = tablesOf(results);
    process.stdout.write(tables.map(plainTable).join(""));
    if (docs) replaceSection("trials/faults/results.md", "figures", tables.map(markdownTable).join("\n"));
    return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
  },
});
