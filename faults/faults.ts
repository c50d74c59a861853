/** `npm run faults`: see --help. */
import { writeFileSync } from "node:fs";
import { limitRunTime, namesIn, parseFlags, runCommand, UsageError } from "../harness/command-line.ts";
import { replaceSection } from "../harness/document-section.ts";
import { describeMachine, machineText } from "../harness/machine.ts";
import { databaseVersions } from "../harness/programs.ts";
import { markdownReport, plainReport, resultText } from "./report.ts";
import { type Result, runScenario, type Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const RUN_TIMEOUT_MS = 8 * 60_000;
const SCENARIO_TIMEOUT_MS = 60_000;

const names = SCENARIOS.map(({ name }) => name);
const width = Math.max(...names.map(({ length }) => length));

const HELP = `Usage: npm run faults [-- OPTIONS]

Injects faults under load into real servers of its own and measures what clients notice: errors, the longest response time,
the recovery time, creates lost or done twice. Exits with 1 if a promise is broken. Takes less than three minutes.

  --only LIST   Some of these scenarios, with commas between (default: all)
${SCENARIOS.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n")}
  --json FILE   Also write the figures to this file
  --docs        Also write the figures to faults/results.md
  --help        Show this
`;

const FLAGS = {
  only: { type: "string" },
  json: { type: "string" },
  docs: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

async function runWithTimeout(scenario: Scenario): Promise<Result> {
  const { name, title } = scenario;
  const timeout = Bun.sleep(SCENARIO_TIMEOUT_MS).then(() => {
    throw new Error(`not finished after ${SCENARIO_TIMEOUT_MS / 1_000} s`);
  });
  return await Promise.race([runScenario(scenario), timeout]).catch((error: unknown) => {
    return { name, title, problems: [error instanceof Error ? error.message : String(error)] };
  });
}

function environmentOf(): string[] {
  const machine = describeMachine();
  return [
    `${machineText(machine)}; load average at the end ${machine.load}`,
    `Bun ${Bun.version}, ${databaseVersions()}`,
    `measured on ${new Date().toISOString().slice(0, 10)}`,
  ];
}

await runCommand("faults", async (args) => {
  const { only, json, docs, help } = parseFlags(args, FLAGS);
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (only !== undefined && docs)
    throw new UsageError("--docs needs all scenarios and does not go with --only");
  limitRunTime(RUN_TIMEOUT_MS);
  const chosen = only === undefined ? names : namesIn("--only", only, names);
  const scenarios = SCENARIOS.filter(({ name }) => chosen.includes(name));
  const results: Result[] = [];
  for (const [i, scenario] of scenarios.entries()) {
    process.stdout.write(`[${i + 1}/${scenarios.length}] ${scenario.title} … `);
    const result = await runWithTimeout(scenario);
    process.stdout.write(`${resultText(result)}\n`);
    results.push(result);
  }
  const environment = environmentOf();
  process.stdout.write(plainReport(results, environment));
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ environment, results }, null, 2)}\n`);
  if (docs) replaceSection("faults/results.md", "figures", markdownReport(results, environment));
  return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
});
