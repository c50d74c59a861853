import { expect, test } from "bun:test";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpAfterAll, cliDirectory, InProcessCli, wrongUsage } from "./cli.ts";
import { NO_DATABASE } from "./command-lines.ts";
import { withStores } from "./keys.ts";

cleanUpAfterAll();

const FILE = `# The shop
plans:
  free: { perMinute: 70 }
banRules:
  strikes: 12
operators:
  - name: ann
    role: support
    expiresAt: 2027-05-01T00:00:00+02:00
  - { name: root, role: admin }
keys:
  - id: mobile-app
    name: Mobile app
    plan: pro
    owner: mobile@example.com
    labels: [eu]
  - id: partner
    name: Partner
    plan: enterprise
    limits: { perMinute: 500, perDay: 10000 }
    notes: |
      Two
      lines
    access: read
    disabled: true
`;

/** A directory with files, and a command line with data of its own. */
function setUp(...flags: string[]) {
  const directory = cliDirectory();
  const cli = new InProcessCli();
  const write = (text: string, name = "petstore.yaml") => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const run = async (...words: string[]) => {
    const { code, out, err } = await cli.run([...words, ...flags]);
    return { code, out: out + err };
  };
  return {
    cli,
    directory,
    write,
    run,
    apply: (text: string, ...rest: string[]) => run("apply", write(text), ...rest),
    /** The rows of a list, by the field that names them. */
    list: async (what: string, ...rest: string[]): Promise<Record<string, unknown>[]> =>
      JSON.parse((await run(what, "list", "--json", ...rest)).out),
    actions: async () =>
      JSON.parse((await run("audit", "--json")).out)
        .map(({ action }: { action: string }) => action)
        .toReversed(),
  };
}

test("apply makes what the file says, an audit entry for each change; a second time it changes nothing", async () => {
  const { apply, list, actions } = setUp();
  const first = await apply(FILE);
  expect(first.code).toBe(0);
  expect(first.out).toContain("@@ update plan free @@\n-perMinute: 60\n+perMinute: 70\n");
  expect(first.out).toMatch(/\npet_live_\w{36} {3}# of key mobile-app, shown only this once\n/);
  expect(first.out).toMatch(/\npet_admin_\w{43} {3}# of operator root, shown only this once\n/);
  expect(first.out).toEndWith("7 changes in production (data: " + first.out.split("(data: ")[1]);
  const made = [
    "plan.updated",
    "ban-rules.updated",
    "operator.created",
    "operator.created",
    "key.created",
    "key.created",
    "key.disabled",
  ];
  expect(await actions()).toEqual(made);
  expect(await list("keys")).toMatchObject([
    { id: 1, name: "Mobile app", plan: "pro", labels: ["eu", "id:mobile-app"], state: "active" },
    { id: 2, limits: { perMinute: 500, perDay: 10_000 }, notes: "Two\nlines\n", state: "disabled" },
  ]);
  expect(await apply(FILE)).toMatchObject({ code: 0, out: expect.stringContaining("Nothing differs in ") });
  expect(await actions()).toEqual(made);
});

test("--dry-run prints the difference and changes nothing", async () => {
  const { apply, list, actions } = setUp();
  const { code, out } = await apply(FILE, "--dry-run");
  expect(code).toBe(0);
  expect(out).toContain(
    "@@ create key mobile-app @@\n+name: Mobile app\n+plan: pro\n+owner: mobile@example.com\n",
  );
  expect(out).toEndWith("7 changes, of which none was made: --dry-run.\n");
  expect(out).not.toContain("pet_live_");
  expect(await actions()).toEqual([]);
  await apply(FILE);
  const before = await actions();
  const changed = FILE.replace("plan: pro", "plan: business").replace("disabled: true", "disabled: false");
  expect((await apply(changed, "--dry-run")).out).toBe(
    "@@ update key mobile-app @@\n-plan: pro\n+plan: business\n@@ enable key partner @@\n-disabled: true\n+disabled: false\n2 changes, of which none was made: --dry-run.\n",
  );
  expect(await actions()).toEqual(before);
  await apply(changed);
  expect(await list("keys")).toMatchObject([{ plan: "business" }, { state: "active" }]);
});

test("before the first start, migrate makes the database; the first start makes no key beside those of the file", async () => {
  const { cli, apply, list } = setUp();
  rmSync(cli.dataDir, { recursive: true });
  expect((await apply(FILE)).out).toMatch(NO_DATABASE);
  expect(await cli.out("migrate")).toMatch(/^Made the tables of production \(data: /);
  expect(await apply(FILE)).toMatchObject({ code: 0 });
  const { secret, stop } = await cli.serve();
  await stop();
  expect(secret).toBeUndefined();
  expect(await list("keys")).toHaveLength(2);
  expect(await list("plans")).toMatchObject([{ plan: "free", perMinute: 70 }, {}, {}, {}]);
});

test("what the file does not name stays, fields too; null removes a value", async () => {
  const { apply, list, run } = setUp();
  await apply(FILE);
  await run("keys", "create", "--name", "other", "--plan", "free");
  await run("keys", "update", "1", "--notes", "kept");
  const { out } = await apply("keys: [{ id: mobile-app, name: Mobile app, plan: pro, owner: null }]");
  expect(out).toStartWith(
    "@@ update key mobile-app @@\n-owner: mobile@example.com\n+owner: null\n1 change in ",
  );
  const [mobile, , other] = await list("keys");
  expect(mobile).toMatchObject({ owner: null, notes: "kept", labels: ["eu", "id:mobile-app"] });
  expect(other).toMatchObject({ name: "other", state: "active" });
});

test("--prune disables keys and operators that their list lacks, deletes none, and leaves lists that are missing", async () => {
  const { apply, list, run } = setUp();
  await apply(FILE);
  await run("keys", "create", "--name", "other", "--plan", "free");
  const onlyKeys = "keys: [{ id: mobile-app, name: Mobile app, plan: pro }]";
  expect((await apply(onlyKeys, "--prune")).out).toContain(
    "@@ disable key 3 (other) @@\n-disabled: false\n+disabled: true\n# 0 requests in the last 24 hours\n",
  );
  expect(await list("keys")).toMatchObject([
    { state: "active" },
    { state: "disabled" },
    { state: "disabled" },
  ]);
  expect(await list("operators")).toMatchObject([
    { expiresAt: "2027-04-30T22:00:00.000Z" },
    { expiresAt: null },
  ]);
  const onlyRoot = "operators: [{ name: root, role: admin }]";
  expect((await apply(onlyRoot, "--prune")).out).toStartWith(
    "@@ disable operator ann @@\n-expiresAt: 2027-04-30T22:00:00.000Z\n+expiresAt: 2026-11-15T12:00:01.000Z\n# last there: never\n1 change in ",
  );
  expect((await apply(onlyRoot, "--prune")).out).toContain("Nothing differs");
  expect(await list("operators")).toMatchObject([{ name: "ann", revokedAt: null }, { name: "root" }]);
});

test("the last admin whose token does not expire stays, or is replaced by another one first", async () => {
  const { apply, list, actions } = setUp();
  await apply(FILE);
  const before = await actions();
  const rejected = async (text: string, ...rest: string[]) => {
    const { code, out } = await apply(text, ...rest);
    expect(code).toBe(1);
    expect(await actions()).toEqual(before);
    return out;
  };
  const last = "root, who is the last admin whose token does not expire\n";
  expect(
    await rejected("plans: { pro: { perMinute: 9 } }\noperators: [{ name: eve, role: viewer }]", "--prune"),
  ).toContain(`line 2: operators lacks ${last}`);
  for (const change of ["role: viewer", "role: admin, expiresAt: 2030-01-01T00:00:00Z"])
    expect(
      await rejected(`operators:\n  - { name: eve, role: support }\n  - { name: root, ${change} }`),
    ).toContain(`line 3: operators[1].name is ${last}`);
  const { code, out } = await apply(
    "operators: [{ name: root, role: viewer }, { name: ann, role: admin, expiresAt: null }]",
  );
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("2 changes in ") });
  expect(await list("operators")).toMatchObject([{ role: "admin", expiresAt: null }, { role: "viewer" }]);
  const eve = await apply("operators: [{ name: ann, role: viewer }, { name: eve, role: admin }]");
  expect({ code: eve.code, titles: eve.out.match(/@@.*/g) }).toEqual({
    code: 0,
    titles: ["@@ create operator eve @@", "@@ update operator ann @@"],
  });
});

test("a change that fails after others: what was made is printed with its secrets, and the file goes on from there", async () => {
  const { cli, write } = setUp();
  const token = "token-of-the-operator-who-applies";
  await using server = await cli.serve([], { PETSTORE_ADMIN_TOKEN: token });
  let keysLeft = 1;
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const isKey = request.method === "POST" && pathname === "/api/keys";
      if (isKey && keysLeft-- === 0) return new Response("Bad gateway", { status: 502 });
      const { method } = request;
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const body = method === "GET" ? null : await request.text();
      return fetch(server.adminUrl + pathname + search, { method, headers, body });
    },
  });
  const remote = { PETSTORE_SERVER: proxy.url.origin, PETSTORE_TOKEN: token };
  const keys = ["one", "two", "three"].map((id) => `{ id: ${id}, name: ${id}, plan: free }`);
  const apply = (...rest: string[]) =>
    cli.run(["apply", write(`keys: [${keys.join(", ")}]`), ...rest], remote);
  keysLeft = 0;
  expect((await apply()).out).toBe("");
  keysLeft = 1;
  const first = await apply("--json");
  expect(first).toMatchObject({
    code: 1,
    err: expect.stringContaining("not known whether the key was created"),
  });
  const [printed = "", warning] = first.out.split("warning: ");
  expect(JSON.parse(printed)).toEqual({
    changes: [expect.objectContaining({ name: "one", secret: expect.stringMatching(/^pet_live_/) })],
    applied: true,
  });
  expect(warning).toBe("made 1 of 3 changes; apply the file again for the others\n");
  keysLeft = 1;
  expect((await apply()).out).toMatch(/# of key two, shown only this once\nwarning: made 1 of 2 changes/);
  keysLeft = 1;
  expect((await apply()).out).toContain("1 change in ");
  await proxy.stop(true);
});

test("export config writes a file that changes nothing, with keys that no file has named by their number", async () => {
  const { apply, run, directory } = setUp();
  await apply(FILE);
  await run(
    "keys",
    "create",
    "--name",
    "no: [file] 'names' it",
    "--plan",
    "free",
    "--label",
    "true",
    "--expires",
    "365d",
  );
  await run("keys", "create", "--name", "gone", "--plan", "free");
  await run("keys", "revoke", "4", "--yes");
  const { out } = await run("export", "config");
  expect(out).toBe(`plans:
  free:
    perMinute: 70
    perDay: 1000
  pro:
    perMinute: 300
    perDay: 10000
  business:
    perMinute: 1000
    perDay: 100000
  anonymous:
    perMinute: 300
    perDay: 10000
banRules:
  strikes: 12
  graceMs: 1000
  lengthMs: 300000
  maxLengthMs: 2400000
operators:
  - name: ann
    role: support
    expiresAt: 2027-04-30T22:00:00.000Z
  - name: root
    role: admin
keys:
  - id: mobile-app
    name: Mobile app
    plan: pro
    owner: mobile@example.com
    labels:
      - eu
  - id: partner
    name: Partner
    plan: enterprise
    limits:
      perMinute: 500
      perDay: 10000
    notes: |
      Two
      lines
    access: read
    disabled: true
  - id: 3
    name: "no: [file] 'names' it"
    plan: free
    labels:
      - "true"
    expiresAt: 2027-11-15T12:00:00.000Z
`);
  for (const text of [out, (await run("export", "config", "--json")).out])
    expect((await apply(text, "--prune")).out).toStartWith("Nothing differs in ");
  const path = join(directory, "exported.yaml");
  expect((await run("export", "config", path)).out).toContain("Exported 3 keys and 2 operators to ");
  expect(readFileSync(path, "utf8")).toBe(out);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("--secrets-file has the secrets instead of standard output, for its owner only; an earlier file is kept", async () => {
  const { cli, apply, run, directory } = setUp();
  const secrets = join(directory, "secrets");
  const { out } = await apply(FILE, "--secrets-file", secrets);
  expect(out).toContain("@@ create key mobile-app @@\n+name: Mobile app\n");
  expect(out).not.toContain("pet_live_");
  const text = readFileSync(secrets, "utf8");
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/_\w+$/, ""));
  expect(lines).toEqual(["operator ann pet", "operator root pet", "key mobile-app pet", "key partner pet"]);
  expect(statSync(secrets).mode & 0o777).toBe(0o600);
  const [, key = ""] = /mobile-app (\S+)/.exec(text) ?? [];
  cli.secret = key;
  expect((await run("keys", "find")).out).toContain("Mobile app");
  // The same command can run every night; it needs a new file when it makes a secret.
  expect((await apply(FILE, "--secrets-file", secrets)).out).toStartWith("Nothing differs in ");
  const stricter = "banRules: { strikes: 11 }";
  expect((await apply(stricter, "--secrets-file", secrets)).out).toContain("1 change in ");
  const more = `${FILE}  - { id: new, name: new, plan: free }\nbanRules: { strikes: 20 }\n`.replace(
    /^banRules:\n.*\n/m,
    "",
  );
  const again = await apply(more, "--secrets-file", secrets);
  expect(again).toMatchObject({ code: 2, out: expect.stringContaining("which exists; name a new file") });
  expect((await run("ban-rules", "show")).out).not.toContain("20");
  expect(readFileSync(secrets, "utf8")).toBe(text);
});

test("secrets that cannot be written to their file are printed", async () => {
  const { cli, write } = setUp();
  let out = "";
  const print = async (text: string | Uint8Array) => void (out += String(text));
  const line = ["apply", write(FILE), "--secrets-file", join(write(FILE), "secrets")];
  await expect(cli.run(line, {}, { print })).rejects.toThrow("EEXIST");
  expect(out).toMatch(/^operator ann pet_admin_\w{43}$/m);
});

test("--json has each change, with its secret", async () => {
  const { apply } = setUp();
  const { changes, applied } = JSON.parse((await apply(FILE, "--json")).out);
  expect(applied).toBe(true);
  expect(changes[0]).toEqual({
    action: "update",
    kind: "plan",
    name: "free",
    before: { perMinute: 60 },
    after: { perMinute: 70 },
  });
  expect(changes.at(-2)).toMatchObject({
    action: "create",
    name: "partner",
    secret: expect.stringMatching(/^pet_/),
  });
  expect(JSON.parse((await apply(FILE, "--json", "--dry-run")).out)).toEqual({ changes: [], applied: false });
});

test("a key that two keys claim, one that is revoked and an operator who is: the file names them", async () => {
  const { apply, run } = setUp();
  await apply(FILE);
  const claims = ["--name", "b", "--plan", "free", "--label", "id:mobile-app"];
  await run("keys", "create", ...claims);
  expect((await apply(FILE)).out).toContain("line 12: keys[0].id is the name of several keys: 1, 3");
  await run("keys", "revoke", "3", "--yes");
  expect((await apply(FILE)).out).toContain("Nothing differs");
  await run("keys", "revoke", "1", "--yes");
  await run("operators", "revoke", "ann", "--yes");
  const revoked = [
    "line 7: operators[0].name is ann, who is revoked; petstore operators create lets them in again",
    "line 12: keys[0].id names key 1, which is revoked; take another name",
  ];
  const { out } = await apply(FILE);
  for (const line of revoked) expect(out).toContain(`warning: left out: ${line}\n`);
  const byNumber = await apply(FILE.replace("id: mobile-app", "id: 1"));
  expect(byNumber.out).toContain(
    "keys[0].id names key 1, which is revoked; give a new one a name such as mobile-app\n",
  );
  await run("operators", "create", "--name", "ann", "--role", "support");
  expect((await apply(FILE)).out).not.toContain("operators[0]");
});

test("what was revoked or has expired is left out and the rest applied, unless the file has nothing else", async () => {
  const { cli, apply, list, run, actions } = setUp();
  await apply(FILE);
  await run("keys", "revoke", "1", "--yes");
  await run("keys", "update", "2", "--expires", "1h");
  cli.clock.advance(3_600_000);
  const lower = FILE.replace("perMinute: 70", "perMinute: 50").replace("name: Partner", "name: Associate");
  const mobile = "line 12: keys[0].id names key 1, which is revoked; take another name";
  const partner = "line 17: keys[1].id names key 2, which has expired; give it a later expiresAt";
  const lowered = await apply(lower);
  expect(lowered.code).toBe(0);
  expect(lowered.out).toStartWith(
    `warning: left out: ${mobile}\nwarning: left out: ${partner}\n@@ update plan free`,
  );
  expect(lowered.out).toEndWith("; 2 left out.\n");
  expect(await list("plans")).toContainEqual(expect.objectContaining({ plan: "free", perMinute: 50 }));
  const again = await apply(lower);
  expect(again).toEqual({
    code: 0,
    out: expect.stringMatching(/\nNothing else differs in .*; 2 left out\.\n$/),
  });
  const made = await actions();
  const alone = await apply(lower.slice(lower.indexOf("keys:")));
  expect(alone).toEqual({ code: 1, out: expect.stringContaining("2 problems in ") });
  expect(alone.out).toContain("keys[0].id names key 1, which is revoked");
  expect(await actions()).toEqual(made);
  const json = JSON.parse(
    (await run("apply", setUp().write(lower), "--json")).out.replaceAll(/^warning.*\n/gm, ""),
  );
  expect(json).toEqual({ changes: [], applied: true, leftOut: [mobile, partner] });
});

test("--check ends with 0 if nothing differs, with 1 if something does, and with 2 if the command fails", async () => {
  const { cli, apply, write, run, actions } = setUp();
  await apply(FILE);
  const made = await actions();
  expect(await apply(FILE, "--check")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Nothing differs/),
  });
  const changed = FILE.replace("perMinute: 70", "perMinute: 80");
  const differing = await apply(changed, "--check");
  expect(differing.code).toBe(1);
  expect(differing.out).toStartWith(
    "@@ update plan free @@\n-perMinute: 70\n+perMinute: 80\n1 difference between ",
  );
  const json = await cli.run(["apply", write(changed), "--check", "--json"]);
  expect(JSON.parse(json.out)).toMatchObject({ changes: [{ kind: "plan", name: "free" }], applied: false });
  expect(json.code).toBe(1);
  for (const failing of [
    await apply("keys: 5", "--check"),
    await apply(FILE, "--check", "--server", "http://127.0.0.1:1", "--admin-token", "x"),
    await run("apply", "/nowhere.yaml", "--check"),
    await apply(FILE, "--check", "--server", "nonsense"),
  ])
    expect(failing.code).toBe(2);
  await run("keys", "revoke", "1", "--yes");
  expect((await apply(FILE, "--check")).code).toBe(1);
  expect(await actions()).toEqual([...made, "key.revoked"]);
});

test("--prune shows the requests of the last day of each key that it disables", async () => {
  const { cli, apply, run } = setUp();
  await run("keys", "create", "--name", "used", "--plan", "free");
  const counts = { admitted: 2_000, limited: 30, banned: 4, errors: 500, byOperation: [] };
  for (const hoursAgo of [23, 30]) {
    const hour = cli.clock.now() - hoursAgo * 3_600_000;
    const batch = { writer: crypto.randomUUID(), sequence: 1, hour };
    await withStores(cli, ({ usageHistory }) =>
      usageHistory.addUsage({ ...batch, keys: [{ keyId: 1, ...counts, lastUsedAt: hour }] }),
    );
  }
  const empty = "keys: [{ id: web, name: Web, plan: free }]";
  expect((await apply(empty, "--prune", "--dry-run")).out).toContain(
    "+disabled: true\n# 2,034 requests in the last 24 hours\n",
  );
  expect((await apply(empty, "--prune", "--check", "--json")).out).toContain('"requestsOfLastDay": 2034');
});

test("a key that a file names twice, by its name and by its identifier, is a problem", async () => {
  const { apply } = setUp();
  await apply(FILE);
  const { code, out } = await apply(
    "keys:\n  - { id: mobile-app, name: Mobile app, plan: pro }\n  - { id: 1, name: other, plan: free }\n",
  );
  expect({ code, out }).toEqual({
    code: 1,
    out: expect.stringContaining("line 3: keys[1].id names key 1, and so does keys[0]"),
  });
});

test("apply reads standard input, and a label connects a key to a file", async () => {
  const { cli, run, list } = setUp();
  await run("keys", "create", "--name", "existing", "--plan", "free");
  await run("keys", "update", "1", "--label", "id:web");
  cli.input = '{"keys":[{"id":"web","name":"Website","plan":"pro"}]}';
  expect((await run("apply", "-")).out).toContain(
    "-name: existing\n-plan: free\n+name: Website\n+plan: pro\n",
  );
  expect(await list("keys")).toMatchObject([{ id: 1, name: "Website", plan: "pro", labels: ["id:web"] }]);
  cli.input = "keys: 5";
  expect((await run("apply", "-")).out).toEndWith("1 problem in standard input; nothing was changed");
});

test("apply and export config work on a remote server, and --prune spares the operator who applies", async () => {
  const { cli, write } = setUp();
  const token = "token-of-the-operator-who-applies";
  const server = await cli.serve([], { PETSTORE_ADMIN_TOKEN: token });
  const remote = { PETSTORE_SERVER: server.adminUrl, PETSTORE_TOKEN: token };
  const run = async (...words: string[]) => (await cli.run(words, remote)).out;
  const path = write(FILE);
  expect(await run("apply", path)).toContain(`7 changes in ${server.adminUrl}.\n`);
  expect(await run("apply", path)).toBe(`Nothing differs in ${server.adminUrl}.\n`);
  const exported = await run("export", "config");
  expect(exported).toContain("id: mobile-app");
  expect(await run("apply", write(exported, "exported.yaml"), "--prune")).toContain("Nothing differs");
  const pruned = await run("apply", path, "--prune", "--dry-run");
  expect(pruned).toContain("@@ disable key 1 (first key) @@");
  expect(pruned).not.toContain("bootstrap");
  await server.stop();
});

test("an enterprise key keeps its limits; a key that has expired needs a later expiry, if anything differs", async () => {
  const { cli, apply } = setUp();
  await apply(FILE);
  expect((await apply("keys: [{ id: partner, name: Other, plan: enterprise }]")).out).toStartWith(
    "@@ update key partner @@\n-name: Partner\n+name: Other\n1 change in ",
  );
  expect((await apply("keys: [{ id: mobile-app, name: Mobile app, plan: enterprise }]")).out).toStartWith(
    "warning: line 1: keys[0].limits must be given for the enterprise plan",
  );
  const soon = (name: string) =>
    apply(`keys: [{ id: soon, name: ${name}, plan: free, expiresAt: 2026-11-15T13:00:00Z }]`);
  await soon("a");
  cli.clock.advance(3_600_000);
  expect((await soon("a")).out).toStartWith("Nothing differs in ");
  expect((await soon("b")).out).toContain(
    "line 1: keys[0].id names key 3, which has expired; give it a later expiresAt\n",
  );
});

test("apply without FILE says what it needs", async () => {
  expect(await new InProcessCli().run("apply")).toEqual(
    wrongUsage("apply needs FILE: the path of a file, or - for standard input"),
  );
});
