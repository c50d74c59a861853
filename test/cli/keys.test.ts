import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyView } from "../../src/cli/key-view.ts";
import { curlLine, shellWord } from "../../src/cli/secret.ts";
import { pathsOf } from "../../src/config.ts";
import { hashSecret, isWellFormedSecret } from "../../src/domain/api-keys.ts";
import {
  decide,
  type BanRules,
  DAY_MS,
  MINUTE_MS,
  newUsage,
  type Usage,
} from "../../src/domain/rate-limit.ts";
import { openUsageStore, openStore } from "../../src/store/sqlite/index.ts";
import { cleanUp, Workbench } from "./workbench.ts";

afterAll(cleanUp);

interface Created {
  readonly id: number;
  readonly key: string;
}

const FREE = { perMinute: 60, perDay: 1_000 };

const create = (bench: Workbench, ...argv: string[]) =>
  bench.json<Created>("keys", "create", ...(argv.length > 0 ? argv : ["--name", "app", "--plan", "free"]));
const show = (bench: Workbench, id: number) => bench.json<KeyView>("keys", "show", String(id));
const place = ({ dataDir }: Workbench) => ({ environment: "production", dataDir }) as const;

/** What the database says of a secret; undefined when it opens nothing. */
async function credential(bench: Workbench, secret: string) {
  const { keys, close } = await openStore(pathsOf(place(bench)).store);
  try {
    return await keys.findCredential(hashSecret(secret));
  } finally {
    await close();
  }
}

function writeUsageStore(bench: Workbench, id: number, usage: Usage): void {
  const usageStore = openUsageStore(pathsOf(place(bench)).usageStore);
  usageStore.save([[`key:${id}`, usage]]);
  usageStore.close();
}

describe("keys create", () => {
  test("makes the folder and the database, and prints a key that works", async () => {
    const bench = new Workbench();
    expect(existsSync(bench.dataDir)).toBeFalse();
    const created = await create(bench, "--name", "mobile app", "--plan", "pro", "--expires", "30d");
    expect<Record<string, unknown>>({ ...created }).toEqual({
      id: 1,
      key: expect.any(String),
      name: "mobile app",
      plan: "pro",
      limits: { perMinute: 300, perDay: 10_000 },
      createdAt: "2026-11-15T12:00:00.000Z",
      expiresAt: "2026-12-15T12:00:00.000Z",
    });
    expect(isWellFormedSecret(created.key, "production")).toBeTrue();
    expect((await credential(bench, created.key))?.key).toMatchObject({
      id: 1,
      name: "mobile app",
      plan: "pro",
    });
  });

  test("a key without an end has none", async () => {
    expect(await create(new Workbench())).toMatchObject({ expiresAt: null });
  });

  test("says once what is said only once, with a line to try it", async () => {
    const { out } = await new Workbench().run(["keys", "create", "--name", "app", "--plan", "free"]);
    const [secret = ""] = /pet_live_\w+/.exec(out) ?? [];
    expect(out).toBe(`Key 1 "app" for production: free, 60 a minute, 1,000 a day

  ${secret}

It will not be shown again: only a hash of it is kept. Try it:

  curl -i -H 'Authorization: Bearer ${secret}' http://127.0.0.1:8080/v1/pets
`);
  });

  test("without an address, how to get one is said in place of the line", async () => {
    const create = ["keys", "create", "--name", "app", "--plan", "free", "--port", "0"];
    const { out } = await new Workbench().run(create);
    expect(out).toEndWith(
      "only a hash of it is kept. A server on --port 0 says at its start where to try it.\n",
    );
    expect(out).not.toContain("curl");
  });

  test("the folder is made for its owner alone", async () => {
    const bench = new Workbench();
    await create(bench);
    expect(statSync(bench.dataDir).mode & 0o777).toBe(0o700);
  });

  test("staging keys have their own prefix, database and address", async () => {
    const bench = new Workbench();
    await create(bench);
    const { out } = await bench.run([
      "keys",
      "create",
      "--name",
      "app",
      "--plan",
      "free",
      "--env",
      "staging",
    ]);
    expect(out).toStartWith('Key 1 "app" for staging');
    expect(out).toMatch(/^ {2}pet_test_\w+$/m);
    expect(out).toContain("http://127.0.0.1:8081/v1/pets");
  });

  test("an enterprise key brings its own numbers", async () => {
    const enterprise = ["--plan", "enterprise", "--per-minute", "5000", "--per-day", "4000"];
    const created = await create(new Workbench(), "--name", "partner", ...enterprise);
    expect(created).toMatchObject({ plan: "enterprise", limits: { perMinute: 5_000, perDay: 4_000 } });
  });

  test("everything can come from variables", async () => {
    const { code, out } = await new Workbench().run(["keys", "create"], {
      PETSTORE_NAME: "from outside",
      PETSTORE_PLAN: "business",
      PETSTORE_BUSINESS_LIMITS: "7/8",
      PETSTORE_JSON: "true",
    });
    expect({ code, ...JSON.parse(out) }).toMatchObject({
      code: 0,
      name: "from outside",
      limits: { perMinute: 7, perDay: 8 },
    });
  });

  test("an address is one word to the shell, whatever it holds", () => {
    expect(shellWord("http://127.0.0.1:8080/v1")).toBe("http://127.0.0.1:8080/v1");
    expect(shellWord("http://[::1]/it's/$(x)")).toBe("'http://[::1]/it'\\''s/$(x)'");
    expect(curlLine("pet_live_x", "http://[::1]:1/v1")).toEndWith("'http://[::1]:1/v1/pets'");
  });
});

describe("keys list and keys show", () => {
  test("an empty place gets a friendly line, an empty array, and no files", async () => {
    const bench = new Workbench();
    const { code, out } = await bench.run(["keys", "list"]);
    expect({ code, out }).toEqual({
      code: 0,
      out: `No keys yet in production at ${bench.dataDir}. Make one: petstore keys create --name NAME --plan free\n`,
    });
    expect(await bench.json<unknown>("keys", "list")).toEqual([]);
    expect(existsSync(bench.dataDir)).toBeFalse();
  });

  test("a table, oldest first, its columns under one another", async () => {
    const bench = new Workbench();
    await create(bench, "--name", "日本の店", "--plan", "free");
    await create(
      bench,
      "--name",
      "b",
      "--plan",
      "enterprise",
      "--per-minute",
      "5",
      "--per-day",
      "6",
      "--expires",
      "1h",
    );
    expect((await bench.run(["keys", "list"])).out).toBe(
      `ID  NAME      PLAN        STATE   MINUTE  DAY     STRIKES  BANNED UNTIL  EXPIRES               CREATED
1   日本の店  free        active  0/60    0/1000  0        -             -                     2026-11-15T12:00:00Z
2   b         enterprise  active  0/5     0/6     0        -             2026-11-15T13:00:00Z  2026-11-15T12:00:00Z
`,
    );
  });

  test("neither a secret nor its hash is ever printed", async () => {
    const bench = new Workbench();
    const { key } = await create(bench);
    for (const line of ["list", "show 1", "set-plan 1 pro", "unban 1", "revoke 1"]) {
      for (const json of [[], ["--json"]]) {
        const { code, out } = await bench.run(["keys", ...line.split(" "), ...json]);
        expect(code).toBe(0);
        expect(out).not.toContain("pet_live_");
        expect(out).not.toContain(hashSecret(key));
        expect(out).not.toContain(key.slice(-8));
      }
    }
  });

  test("use of both windows comes from the usageStore, and closed windows show nothing", async () => {
    const bench = new Workbench();
    const { id } = await create(bench);
    const usage = newUsage();
    for (let i = 0; i < 12; i++) decide(usage, FREE, bench.clock.now());
    writeUsageStore(bench, id, usage);
    expect((await show(bench, id)).use).toEqual({
      minute: { used: 12, limit: 60, resetsAt: "2026-11-15T12:01:00.000Z" },
      day: { used: 12, limit: 1_000, resetsAt: "2026-11-16T12:00:00.000Z" },
    });
    expect((await bench.run(["keys", "list"])).out).toContain(" 12/60   12/1000 ");

    bench.clock.advance(MINUTE_MS);
    expect((await show(bench, id)).use).toMatchObject({
      minute: { used: 0, resetsAt: null },
      day: { used: 12 },
    });
    bench.clock.advance(DAY_MS);
    expect((await show(bench, id)).use?.day).toEqual({ used: 0, limit: 1_000, resetsAt: null });
  });

  test("limits are those that the server was started with", async () => {
    const bench = new Workbench();
    await create(bench);
    const { out } = await bench.run(["keys", "show", "1"], { PETSTORE_FREE_LIMITS: "7/80000" });
    expect(out).toContain("free: 7 a minute, 80,000 a day");
    expect(out).toContain("0 of 80,000 used");
  });

  test("strikes, a ban and its end", async () => {
    const bench = new Workbench();
    const { id } = await create(bench);
    const rules: BanRules = { strikes: 3, graceMs: 0, lengthMs: 300_000 };
    const refuse = (times: number) => {
      for (let i = 0; i < times; i++) {
        bench.clock.advance(1);
        decide(usage, { perMinute: 1, perDay: 1 }, bench.clock.now(), rules);
      }
      writeUsageStore(bench, id, usage);
    };
    const usage = newUsage();
    refuse(4);
    expect(await show(bench, id)).toMatchObject({ state: "active", strikes: 2, bannedUntil: null });
    refuse(1);
    expect(await show(bench, id)).toMatchObject({ state: "banned", bannedUntil: "2026-11-15T12:05:00.005Z" });
    expect((await bench.run(["keys", "show", "1"])).out).toContain(
      "\nState        banned until 2026-11-15T12:05:00.005Z\n",
    );

    bench.clock.advance(300_000);
    expect(await show(bench, id)).toMatchObject({ state: "active", strikes: 0, bannedUntil: null });
  });

  test("counts that cannot be read are not known, and everything else is shown", async () => {
    const bench = new Workbench();
    await create(bench);
    const { usageStore } = pathsOf(place(bench));
    writeFileSync(usageStore, "no database, ".repeat(100));
    const warning = `warning: cannot open the database ${usageStore}: file is not a database; counts start anew when that file is moved away (so use, strikes and bans are not known)\n`;

    const table = await bench.run(["keys", "list"]);
    expect(table).toMatchObject({ code: 0, err: "" });
    expect(table.out).toStartWith(warning);
    expect(table.out).toMatch(/^1 +app +free +active +\? +\? +\? +\? +- +2026-11-15T12:00:00Z$/m);

    const shown = await bench.run(["keys", "show", "1"]);
    expect(shown.out).toContain(
      "\nState        active, unless it is banned\nThis minute  ?\nThis day     ?\n",
    );
    const { out } = await bench.run(["keys", "show", "1", "--json"]);
    expect(JSON.parse(out.slice(warning.length))).toMatchObject({
      state: "active",
      use: null,
      strikes: null,
      bannedUntil: null,
    });
  });

  test("damage that shows only when counts are read is told with the file and the way out", async () => {
    const bench = new Workbench();
    const { id } = await create(bench);
    writeUsageStore(bench, id, newUsage());
    const { usageStore } = pathsOf(place(bench));
    // The pages that are read at the opening are left alone; the table's own is the last one.
    const bytes = readFileSync(usageStore);
    bytes.fill(0xff, bytes.length - 4096);
    writeFileSync(usageStore, bytes);
    const { code, out } = await bench.run(["keys", "list"]);
    expect(code).toBe(0);
    expect(out).toStartWith(
      `warning: cannot read the counts in ${usageStore}: database disk image is malformed; counts start anew when`,
    );
  });

  test("the state of a key that has ended says how", async () => {
    const bench = new Workbench();
    await create(bench, "--name", "short", "--plan", "free", "--expires", "1s");
    await create(bench);
    await bench.run(["keys", "revoke", "2"]);
    bench.clock.advance(1_000);
    expect((await bench.json<KeyView[]>("keys", "list")).map(({ state }) => state)).toEqual([
      "expired",
      "revoked",
    ]);
    expect((await bench.run(["keys", "show", "2"])).out).toContain("Revoked      2026-11-15T12:00:00.000Z\n");
  });
});

describe("keys roll", () => {
  test("prints a new secret, and the old one works until the overlap ends", async () => {
    const bench = new Workbench();
    const { key: old } = await create(bench);
    const rolled = await bench.json("keys", "roll", "1");
    expect(rolled).toEqual({
      id: 1,
      key: expect.any(String),
      name: "app",
      plan: "free",
      earlierWorkUntil: "2026-11-16T12:00:00.000Z",
    });
    expect(await credential(bench, old)).toMatchObject({ validUntil: Date.parse("2026-11-16T12:00:00Z") });
    const current = await credential(bench, String(rolled["key"]));
    expect(current?.key.id).toBe(1);
    expect(current?.validUntil).toBeUndefined();
  });

  test("without overlap the old secret stops at once", async () => {
    const bench = new Workbench();
    const { key: old } = await create(bench);
    const { out } = await bench.run(["keys", "roll", "1", "--overlap", "0"]);
    expect(out).toStartWith('Key 1 "app" has a new secret; earlier ones stopped working.\n\n  pet_live_');
    expect(out).toContain("It will not be shown again");
    expect((await credential(bench, old))?.validUntil).toBe(0);
  });
});

const banned = (at: number): Usage => ({
  minute: { openedAt: at, used: 60, refusedAt: at, strikes: 4 },
  day: { openedAt: at, used: 60, refusedAt: -1, strikes: 0 },
  bannedAt: at,
  bannedUntil: at + 300_000,
});

describe("changing a key", () => {
  test("keys revoke ends a key, and again changes nothing", async () => {
    const bench = new Workbench();
    await create(bench);
    expect((await bench.run(["keys", "revoke", "1"])).out).toBe("Key 1 is revoked.\n");
    bench.clock.advance(5_000);
    expect(await bench.run(["keys", "revoke", "1"])).toEqual({
      code: 0,
      out: "Key 1 was revoked already, at 2026-11-15T12:00:00.000Z.\n",
      err: "",
    });
    expect((await show(bench, 1)).revokedAt).toBe("2026-11-15T12:00:00.000Z");
  });

  test("keys set-plan moves a key, to Enterprise and away from it", async () => {
    const bench = new Workbench();
    await create(bench);
    const enterprise = ["enterprise", "--per-minute", "5", "--per-day", "6"];
    expect((await bench.run(["keys", "set-plan", "1", ...enterprise])).out).toBe(
      "Key 1 is on the enterprise plan now: 5 a minute, 6 a day.\n",
    );
    expect(await show(bench, 1)).toMatchObject({ plan: "enterprise", limits: { perMinute: 5, perDay: 6 } });
    await bench.run(["keys", "set-plan", "1", "pro"]);
    expect(await show(bench, 1)).toMatchObject({ plan: "pro", limits: { perMinute: 300, perDay: 10_000 } });
  });

  test("keys unban lifts the ban there is, with its strikes, and not the next one", async () => {
    const bench = new Workbench();
    const { id } = await create(bench);
    writeUsageStore(bench, id, banned(bench.clock.now()));
    expect(await show(bench, id)).toMatchObject({ state: "banned", strikes: 4 });
    bench.clock.advance(1);
    expect((await bench.run(["keys", "unban", "1"])).out).toBe(
      "Key 1: bans and strikes up to now are lifted.\n",
    );
    expect(await show(bench, id)).toMatchObject({
      state: "active",
      strikes: 0,
      use: { minute: { used: 60 } },
    });

    bench.clock.advance(1);
    writeUsageStore(bench, id, banned(bench.clock.now()));
    expect(await show(bench, id)).toMatchObject({ state: "banned" });
  });

  test.each([
    ["set-plan 1 pro", "moved to another plan"],
    ["unban 1", "unbanned"],
    ["roll 1", "rolled"],
  ])("keys %s: a key that has ended is left as it is", async (line, fate) => {
    const bench = new Workbench();
    await create(bench, "--name", "x", "--plan", "free", "--expires", "1h");
    const run = () => bench.run(["keys", ...line.split(" ")]);
    bench.clock.advance(3_600_000);
    expect(await run()).toEqual({
      code: 1,
      out: "",
      err: `key 1 expired at 2026-11-15T13:00:00.000Z and cannot be ${fate}; make a new one`,
    });
    await bench.run(["keys", "revoke", "1"]);
    expect(await run()).toEqual({
      code: 1,
      out: "",
      err: `key 1 was revoked at 2026-11-15T13:00:00.000Z and cannot be ${fate}; make a new one`,
    });
    expect(await show(bench, 1)).toMatchObject({ plan: "free", state: "revoked" });
  });

  test("keys unban: counts that cannot be read are a failure that says what to do", async () => {
    const bench = new Workbench();
    await create(bench);
    writeFileSync(pathsOf(place(bench)).usageStore, "no database, ".repeat(100));
    await expect(bench.run(["keys", "unban", "1"])).rejects.toThrow(
      "counts start anew when that file is moved away",
    );
  });

  test.each(["show 7", "revoke 7", "roll 7", "set-plan 7 pro", "unban 7"])(
    "keys %s: no such key",
    async (line) => {
      const bench = new Workbench();
      const missing = {
        code: 1,
        out: "",
        err: `no key 7 exists in production at ${bench.dataDir}; see petstore keys list`,
      };
      expect(await bench.run(["keys", ...line.split(" ")])).toEqual(missing);
      expect(existsSync(bench.dataDir)).toBeFalse();
      await create(bench);
      expect(await bench.run(["keys", ...line.split(" ")])).toEqual(missing);
    },
  );

  test("a folder that cannot be one is a failure that names it", async () => {
    const bench = new Workbench();
    const file = join(bench.dataDir, "..", "file");
    writeFileSync(file, "");
    const argv = ["keys", "create", "--name", "x", "--plan", "free", "--data", file];
    await expect(bench.run(argv)).rejects.toMatchObject({ code: "EEXIST", path: file });
  });
});
