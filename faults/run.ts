import { writeFileSync } from "node:fs";
import { publish } from "./docs.ts";
import { describeGround } from "./machine.ts";
import { help, Misuse, type Options, readOptions } from "./options.ts";
import { play } from "./play.ts";
import { printed, verdictOf } from "./report.ts";
import type { Ground, Result, Scenario } from "./scenario.ts";
import { CLUSTER } from "./scenarios/cluster.ts";
import { DISK } from "./scenarios/disk.ts";
import { HEALTHY } from "./scenarios/healthy.ts";
import { POSTGRES } from "./scenarios/postgres.ts";
import { SERVERS } from "./scenarios/servers.ts";
import { FLUSHES, VALKEY } from "./scenarios/valkey.ts";

interface Playable {
  readonly name: string;
  readonly title: string;
  play(): Promise<Result>;
}

const playable = <G extends Ground>(scenarios: readonly Scenario<G>[]): Playable[] =>
  scenarios.map((scenario) => ({
    name: scenario.name,
    title: scenario.title,
    play: () => play(scenario),
  }));

const SCENARIOS: readonly Playable[] = [
  ...playable(HEALTHY),
  ...playable(VALKEY),
  ...playable(FLUSHES),
  ...playable(CLUSTER),
  ...playable(POSTGRES),
  ...playable(SERVERS),
  ...playable(DISK),
];

const ALL_WITHIN_MS = 8 * 60_000;
const EACH_WITHIN_MS = 60_000;

/** Whatever was started is cleared away when this process ends; see the watchdog of the tests' engines. */
function endBy(reason: string, code: number): never {
  process.stderr.write(`\n${reason}\n`);
  process.exit(code);
}

async function within(ms: number, { name, title, play }: Playable): Promise<Result> {
  const { promise: late, resolve } = Promise.withResolvers<Result>();
  const timer = setTimeout(() => resolve({ name, title, problems: [`not over after ${ms / 1_000} s`] }), ms);
  try {
    return await Promise.race([play(), late]);
  } catch (error) {
    return { name, title, problems: [error instanceof Error ? error.message : String(error)] };
  } finally {
    clearTimeout(timer);
  }
}

async function main(options: Options): Promise<number> {
  const chosen = SCENARIOS.filter(({ name }) => options.only?.includes(name) ?? true);
  const results: Result[] = [];
  for (const [i, scenario] of chosen.entries()) {
    process.stdout.write(`[${i + 1}/${chosen.length}] ${scenario.title} … `);
    const result = await within(EACH_WITHIN_MS, scenario);
    process.stdout.write(`${verdictOf(result)}\n`);
    results.push(result);
  }
  const ground = describeGround();
  process.stdout.write(printed(results, ground));
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify({ ground, results }, null, 2)}\n`);
  if (options.docs) publish(results, ground);
  return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

process.on("SIGINT", () => endBy("Interrupted; everything that was started is being stopped.", 130));
process.on("SIGTERM", () => endBy("Stopped.", 143));
setTimeout(() => endBy(`Not over after ${ALL_WITHIN_MS / 60_000} minutes.`, 1), ALL_WITHIN_MS).unref();
try {
  const options = readOptions(
    process.argv.slice(2),
    SCENARIOS.map(({ name }) => name),
  );
  if (options === "help") process.stdout.write(help(SCENARIOS));
  else process.exit(await main(options));
} catch (error) {
  if (!(error instanceof Misuse)) throw error;
  endBy(`faults: ${error.message}`, 2);
}
