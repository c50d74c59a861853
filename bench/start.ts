/**
 * How long a server takes from its start to its first response: the executable of `npm run build`, `npm start`, and the
 * launcher that `npm start` runs. `npm run bench:start`; with `--check` it fails if the executable takes more than 1.3
 * times as long as `npm start`.
 */
import { join, resolve } from "node:path";
import { Child } from "../trials/harness/child.ts";
import { temporaryFolder } from "../trials/harness/cleanup.ts";
import { integer, isGiven, runCommand } from "../trials/harness/command-line.ts";
import { sendOnce } from "../trials/harness/http-connection.ts";
import { describeMachine, machineText } from "../trials/harness/machine.ts";
import { freePort, untilListening } from "../trials/harness/server.ts";
import { killTree } from "../trials/harness/processes.ts";
import { ratioOf, spreadOf } from "../trials/harness/statistics.ts";
import { plainTable } from "../trials/harness/table.ts";
import { buildExecutable, currentCommit } from "../scripts/build.ts";

const ROOT = resolve(import.meta.dir, "..");
const MAX_RATIO = 1.3;
const POLL_MS = 1;

const commandsOf = (executable: string) => ({
  "npm start": ["npm", "start", "-s", "--"],
  "./petstore serve": [join(ROOT, "petstore"), "serve"],
  "dist/petstore serve": [executable, "serve"],
});

/** Milliseconds from the start of the process to the response of /healthz, on data that exists. */
async function firstResponseMs(command: readonly string[], data: string): Promise<number> {
  const port = freePort();
  const startedAt = performance.now();
  const child = new Child([...command, "--port", `${port}`, "--data", data], { cwd: ROOT });
  const isListening = await Promise.race([untilListening(port, POLL_MS), child.ended.then(() => false)]);
  if (!isListening) throw new Error(`${command[0]} ended:\n${child.output}`);
  const { status } = await sendOnce(port, { path: "/healthz" });
  const elapsed = performance.now() - startedAt;
  if (status !== 200) throw new Error(`/healthz responded with ${status}`);
  await killTree(child.pid);
  return elapsed;
}

const milliseconds = (ms: number) => `${Math.round(ms)} ms`;

await runCommand({
  name: "bench:start",
  flags: { rounds: integer(15, 100), check: isGiven },
  maxMinutes: 10,
  async main({ rounds, check }) {
    const executable = join(temporaryFolder("executable"), "petstore");
    await buildExecutable({ outfile: executable, commit: currentCommit() });
    const commands = Object.entries(commandsOf(executable));
    const times = new Map<string, number[]>(commands.map(([name]) => [name, []]));
    const data = temporaryFolder("data");
    // The first round creates the data and fills the caches of the file system.
    for (let round = -1; round < rounds; round++) {
      for (const [name, command] of commands) {
        const ms = await firstResponseMs(command, data);
        if (round >= 0) times.get(name)?.push(ms);
      }
    }
    const reference = times.get("npm start") ?? [];
    const rows = [...times].map(([name, values]) => {
      const { median, min, max } = spreadOf(values);
      const ratio = ratioOf(values, reference).median;
      return [name, milliseconds(median), milliseconds(min), milliseconds(max), ratio.toFixed(2)];
    });
    const machine = describeMachine();
    process.stdout.write(
      plainTable({
        title: "From the start to the first response",
        note: `${rounds} rounds, SQLite, ${machineText(machine)}, load ${machine.load}`,
        header: ["Command", "Median", "Least", "Most", "Ratio to npm start"],
        rows,
      }),
    );
    const ratio = ratioOf(times.get("dist/petstore serve") ?? [], reference).median;
    const isMet = ratio <= MAX_RATIO;
    process.stdout.write(
      `\nthe executable: ${ratio.toFixed(2)}, at most ${MAX_RATIO}: ${isMet ? "met" : "MISSED"}\n`,
    );
    return check && !isMet ? 1 : 0;
  },
});
