import { clientRestarts } from "./client-restarts.ts";
import { integerIn, limitRunTime, parseFlags, runCommand } from "../harness/command-line.ts";

/** `bun faults/client.ts`: the client library against a server that is killed and that limits it. */
await runCommand("client", async (args) => {
  const {
    creates = "10000",
    kills = "3",
    "per-minute": perMinute = "6000",
  } = parseFlags(args, {
    creates: { type: "string" },
    kills: { type: "string" },
    "per-minute": { type: "string" },
  });
  limitRunTime(15 * 60_000);
  let unhandled = 0;
  process.on("unhandledRejection", () => void unhandled++);
  const expected = integerIn("--creates", creates, 1_000_000);
  const result = await clientRestarts({
    creates: expected,
    kills: integerIn("--kills", kills, 100),
    perMinute: integerIn("--per-minute", perMinute, 1_000_000),
    concurrency: 50,
  });
  const { created, listed, names, duplicates, missing, rateLimited, retries, replays, seconds } = result;
  const isExact = [created, listed, names].every((count) => count === expected) && duplicates + missing === 0;
  const isRight = isExact && rateLimited === 0 && unhandled === 0;
  process.stdout
    .write(`${created} created, ${listed} listed, ${names} different names, ${duplicates} listed twice,
${missing} missing, ${rateLimited} responses with 429, ${retries} retries, ${replays} replays,
${unhandled} unhandled rejections, ${seconds.toFixed(1)} s: ${isRight ? "passed" : "FAILED"}\n`);
  return isRight ? 0 : 1;
});
