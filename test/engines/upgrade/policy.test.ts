import { expect, setDefaultTimeout, test } from "bun:test";
import { messageOf } from "../../../src/runtime/message-of.ts";
import { rateLimitStatus } from "../../../trials/harness/api-client.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { createKey, startPetstore, succeed } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { earlierProgram, PREVIOUS_RELEASE } from "./previous-release.ts";

// Servers start and stop several times, on a machine that may be busy.
setDefaultTimeout(120_000);

const previous = earlierProgram(PREVIOUS_RELEASE);
const FLAGS = ["--port", "0", "--admin-address", "off"];

test.each([
  ["SQLite", async () => ["--data", temporaryDirectory("data")]],
  ["PostgreSQL", async () => ["--database-url", await postgresUrl(), "--data", temporaryDirectory("data")]],
])(
  "%s: limits that the release before set by flags hold, and the release before applies those of this one",
  async (_, storageOf) => {
    const storage = await storageOf();
    /** The limit of a key of the Free plan on a server with these flags. */
    const limitOn = async (program: readonly string[] | undefined, ...flags: string[]) => {
      const server = await startPetstore([...storage, ...FLAGS, ...flags], [], program);
      const { key } = await createKey(storage, "free");
      const { limit } = await rateLimitStatus(server.url, key);
      expect(await server.stop()).toBe(0);
      return limit;
    };
    // This release makes the tables, and the one before runs on them.
    expect(await limitOn(undefined)).toBe(60);
    expect(await limitOn(previous)).toBe(60);
    expect(await limitOn(previous, "--free-limits", "7/70", "--audit-retention", "500d")).toBe(7);
    const refused: unknown = await limitOn(undefined).catch((error: unknown) => error);
    expect(messageOf(refused)).toContain("release 1.3 has stored --audit-retention 500d for all servers");
    expect(await limitOn(undefined, "--audit-retention", "500d")).toBe(7);
    await succeed("plans", "update", "free", "--per-minute", "8", ...storage);
    expect(await limitOn(previous)).toBe(8);
    expect(await limitOn(undefined, "--audit-retention", "400d")).toBe(8);
  },
);
