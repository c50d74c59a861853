/* Runs `npx bun trials/faults/workers.ts`; its --help describes the options. */

import { startForwardingProxy } from "../harness/forwarding-proxy.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { GUIDE_SOURCES } from "../../src/docs-site/sources.ts";
import { Child } from "../harness/child.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, names, runCommand } from "../harness/command-line.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import { executable, PYTHON } from "../harness/programs.ts";
import { type Outcome, runTrials, trialLines } from "../harness/trials.ts";

const PROCESSES = 3;
const CALLS = 80;
const THREADS = 50;
const MAX_SECONDS_TO_BAN = 15;

type Name = "processes" | "threads" | "impatient";

const TRIALS: readonly { readonly name: Name; readonly title: string }[] = [
  {
    name: "processes",
    title: `${PROCESSES} processes of the client library, ${CALLS} calls each, 200 to 1,500 ms`,
  },
  { name: "threads", title: `${THREADS} threads of the example in Python` },
  {
    name: "impatient",
    title: `a client that sends ten requests a second, banned within ${MAX_SECONDS_TO_BAN} s`,
  },
];

const HELP = `Usage: npx bun trials/faults/workers.ts [OPTIONS]

Workers share a key of the Free plan. Those that wait for Retry-After must not be banned, and a client that keeps sending
must be. Takes about six minutes. Exits with 1 when a promise is broken.

  --only NAMES    With commas between them:
${trialLines(TRIALS)}
  --seconds N     How long the threads work (default: 150)
  --help          Show this
`;

/** A proxy that delays every request, and knows every response. */
function startProxy(target: string, leastMs: number, mostMs: number) {
  const counts = { allowed: 0, limited: 0, banned: 0 };
  const proxy = startForwardingProxy(target, async (forward) => {
    const delayMs = leastMs + Math.random() * (mostMs - leastMs);
    await Bun.sleep(delayMs / 2);
    const response = await forward();
    const text = await response.text();
    counts[response.ok ? "allowed" : text.includes("key_banned") ? "banned" : "limited"]++;
    await Bun.sleep(delayMs / 2);
    return new Response(text, response);
  });
  return { ...proxy, counts };
}

type Counts = ReturnType<typeof startProxy>["counts"];

const noteOf = ({ allowed, limited, banned }: Counts) =>
  `${allowed} allowed, ${limited} limited, ${banned} banned`;

function outcomeOf(counts: Counts, problems: readonly string[] = []): Outcome<never> {
  const bans = counts.banned > 0 ? ["the key was banned"] : [];
  const all = [...bans, ...problems];
  return { problems: all.map((problem) => `${problem} (${noteOf(counts)})`), note: noteOf(counts) };
}

async function runProcesses(url: string, key: string): Promise<Outcome<never>> {
  const proxy = startProxy(url, 200, 1_500);
  const file = join(temporaryDirectory("workers"), "process.ts");
  const client = join(import.meta.dir, "../../src/client/index.ts");
  writeFileSync(
    file,
    `import { Petstore } from "${client}";
    const petstore = new Petstore({ key: "${key}", baseUrl: "${proxy.url}", deadlineMs: 600_000 });
    await Promise.all(Array.from({ length: ${CALLS} }, () => petstore.pets.listPage({ limit: 1 })));`,
  );
  const children = Array.from({ length: PROCESSES }, () => new Child([process.execPath, file]));
  const codes = await Promise.all(children.map(({ ended }) => ended));
  proxy.stop();
  const failed = children.filter((_, i) => codes[i] !== 0).map(({ output }) => output.slice(-300));
  const allowed = PROCESSES * CALLS;
  if (failed.length === 0 && proxy.counts.allowed !== allowed)
    failed.push(`${allowed} requests were expected`);
  return outcomeOf(proxy.counts, failed);
}

async function runThreads(url: string, key: string, seconds: number): Promise<Outcome<never>> {
  const proxy = startProxy(url, 5, 50);
  const [, example = ""] = /```python example=python\n([\s\S]*?)```/.exec(GUIDE_SOURCES["rate-limits"]) ?? [];
  const [functions = ""] = example.split("\nresponse = ");
  const file = join(temporaryDirectory("workers"), "threads.py");
  writeFileSync(
    file,
    `${functions}
import threading

def work():
    while True:
        get_with_retry("${proxy.url}/pets", headers={"Authorization": "Bearer ${key}"})

for _ in range(${THREADS}):
    threading.Thread(target=work, daemon=True).start()
time.sleep(${seconds})
`,
  );
  const child = new Child([executable(PYTHON), file]);
  const code = await child.ended;
  proxy.stop();
  const isIdle = proxy.counts.limited < THREADS;
  const problems = [
    ...(code === 0 ? [] : [child.output.slice(-300)]),
    ...(isIdle ? ["too few were limited"] : []),
  ];
  return outcomeOf(proxy.counts, problems);
}

async function runImpatient(url: string, key: string): Promise<Outcome<never>> {
  let limitedAt = 0;
  for (;;) {
    const response = await fetch(`${url}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
    const text = await response.text();
    const now = performance.now();
    if (response.status === 429) limitedAt ||= now;
    const seconds = limitedAt === 0 ? 0 : (now - limitedAt) / 1_000;
    const note = `banned ${seconds.toFixed(1)} s after the first 429`;
    if (text.includes("key_banned")) return { problems: [], note };
    if (seconds > MAX_SECONDS_TO_BAN)
      return { problems: [`not banned ${seconds.toFixed(1)} s after the first 429`] };
    // The first requests use up the limit.
    if (limitedAt > 0) await Bun.sleep(100);
  }
}

await runCommand({
  name: "faults/workers",
  help: HELP,
  flags: { only: names(TRIALS.map(({ name }) => name)), seconds: integer(150, 3_600) },
  maxMinutes: 15,
  async main({ only, seconds }) {
    const data = temporaryDirectory("workers-data");
    const server = await startPetstore(["--data", data, "--port", "0", "--admin-address", "off"]);
    const storage = ["--data", data];
    const code = await runTrials({
      trials: TRIALS,
      only,
      async run({ name }) {
        const { key } = await createKey(storage, "free");
        if (name === "processes") return runProcesses(server.url, key);
        return name === "threads" ? runThreads(server.url, key, seconds) : runImpatient(server.url, key);
      },
    });
    await server.stop();
    return code;
  },
});
