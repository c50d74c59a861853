/* Runs `npm run fuzz`; its --help describes the options. */

import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, limitRunTime, runCommand } from "../harness/command-line.ts";
import { machineNow } from "../harness/machine.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import { storePolicy, UNLIMITED } from "../harness/policy.ts";
import { isRunning, peakMb, residentMb } from "../harness/processes.ts";
import { formatCount, formatFigure, publishTables, tableOf } from "../harness/table.ts";
import { runFuzz } from "./fuzz-run.ts";

const MAX_SEED = 2 ** 32 - 1;
const MAX_GROWTH_MB = 64;
/** The share of the requests after which memory is compared. */
const WARM_UP = 0.1;
const PROGRESS_EVERY = 50_000;

const HELP = `Usage: npm run fuzz [-- OPTIONS]

Sends generated bad requests to a server of its own on the loopback address: bytes, broken HTTP, JSON bodies, query strings and
headers. Exits with 1 at a 5xx, an undeclared status, a missing response, a crash, a good request (one in a thousand) that does not
get 200, or more than ${MAX_GROWTH_MB} MB of additional memory after the first tenth.

  --count N     Number of requests (default: 1000000)
  --seconds N   At most this long (default: 600)
  --seed N      Repeat the requests of an earlier run (default: by chance, printed)
  --help        Show this
`;

await runCommand({
  name: "fuzz",
  help: HELP,
  flags: {
    count: integer(1_000_000, 100_000_000),
    seconds: integer(600, 86_400),
    seed: integer(1 + Math.floor(Math.random() * MAX_SEED), MAX_SEED),
  },
  async main({ count, seconds, seed }) {
    process.stderr.write(`seed ${seed}\n`);
    limitRunTime(seconds / 60 + 1);
    const storage = ["--data", temporaryDirectory("fuzz")];
    await storePolicy(storage, UNLIMITED);
    const server = await startPetstore(["--port", "0", ...storage]);
    const { key } = await createKey(storage);
    let warmMb: number | undefined;
    let nextProgress = PROGRESS_EVERY;
    const figures = await runFuzz({
      url: server.url,
      key,
      seed,
      count,
      seconds,
      onThousand(sent) {
        if (!isRunning(server.pid)) return;
        const mb = residentMb(server.pid);
        if (sent >= count * WARM_UP) warmMb ??= mb;
        if (sent < nextProgress) return;
        nextProgress += PROGRESS_EVERY;
        process.stderr.write(`${formatCount(sent)} requests, ${formatFigure(mb)} MB\n`);
      },
    });
    const hasEnded = !isRunning(server.pid);
    const [endMb, mostMb] = [residentMb(server.pid), peakMb(server.pid)];
    const growthMb = endMb - (warmMb ?? endMb);
    await server.stop();

    const problems = [
      ...(figures.problem === undefined ? [] : [figures.problem]),
      ...(hasEnded ? ["the server ended"] : []),
      ...(growthMb > MAX_GROWTH_MB ? [`memory grew by ${formatFigure(growthMb)} MB`] : []),
    ];
    const statuses = [...figures.statuses].toSorted(([a], [b]) => a - b);
    const rows = [...statuses, ["no response at all (connections)", figures.silent] as const];
    const table = tableOf(`${formatCount(figures.sent)} bad requests, seed ${seed}`, rows, {
      status: ([status]) => `${status}`,
      responses: ([, responses]) => formatCount(responses),
    });
    publishTables([{ ...table, note: `${machineNow()} at the end` }]);
    process.stdout.write(
      `${formatCount(figures.sent / figures.seconds)} requests/s; memory ${formatFigure(warmMb ?? endMb)} MB after the first tenth, ` +
        `${formatFigure(endMb)} MB at the end, ${formatFigure(mostMb)} MB at most\n` +
        `${problems.length === 0 ? "pass" : `FAIL, seed ${seed}\n${problems.join("\n")}`}\n`,
    );
    return problems.length === 0 ? 0 : 1;
  },
});
