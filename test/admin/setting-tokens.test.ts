import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../src/runtime/hash.ts";
import type { AdminConfig } from "../../src/config/config.ts";
import type { OperatorStore } from "../../src/domain/ports/operators.ts";
import { createLog } from "../../src/observe/log.ts";
import { importTokens } from "../../src/operator/sign-in/setting-tokens.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { BY } from "../key-store-arguments.ts";
import { TestClock } from "../test-clock.ts";
import { until } from "../timing.ts";
import { ADMIN_CONFIG } from "./admin-service.ts";

const [ONE, TWO, THREE] = ["the-first-token-of-all", "the-second-token-of-all", "the-third-token-of-all"];

let directory: string;
let file: string;
let stores: SqliteStores;
let log: { event: string; level: string; operator?: string; reason?: string }[];
let servers: AsyncDisposableStack;
beforeEach(() => {
  directory = temporaryDirectory("setting-tokens");
  file = join(directory, "token");
  stores = openSqlite(join(directory, "production.db"));
  log = [];
  servers = new AsyncDisposableStack();
});
afterEach(async () => {
  await servers.disposeAsync();
  await stores.close();
});

/** Imports the tokens as a server does that starts with these settings. */
async function start(settings: Partial<AdminConfig>, operators: OperatorStore = stores.operators) {
  const admin = { ...ADMIN_CONFIG, token: undefined, ...settings };
  const options = { format: "json", write: (line: string) => void log.push(JSON.parse(line)) } as const;
  const follow = await importTokens(admin, { operators, clock: new TestClock(), log: createLog(options) });
  servers.defer(follow());
}

/** The operators in a database that is unavailable for an import while this is true. */
function unavailableWhile(isDown: () => boolean): OperatorStore {
  const { operators } = stores;
  const value = async (...call: Parameters<OperatorStore["importOperator"]>) => {
    if (isDown()) throw new Error("down");
    return operators.importOperator(...call);
  };
  return Object.create(operators, { importOperator: { value } });
}

/** Who is let in, by their tokens. */
async function valid(): Promise<Record<string, string>> {
  const { tokens } = await stores.operators.readAccess();
  const names = [ONE, TWO, THREE].map((token) => [
    token,
    tokens.get(sha256(token))?.operator.name ?? "nobody",
  ]);
  return Object.fromEntries(names.filter(([, name]) => name !== "nobody"));
}

const actions = async () => (await stores.audit.listAudit({ limit: 99 })).items.map(({ action }) => action);
const events = () => log.map(({ event }) => event);
const create = (name: string, token: string) =>
  stores.operators.createOperator({ name, role: "admin" }, { hash: sha256(token), hint: "" }, BY);

async function revoke(name: string): Promise<void> {
  const { id = 0 } = (await stores.operators.listOperators()).find((each) => each.name === name) ?? {};
  await stores.operators.revokeOperator(id, BY);
}

/** Replaces the file as Kubernetes and careful programs do. */
function replaceFile(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

describe("a server that starts", () => {
  test("with the same token as others changes nothing, and one without the setting leaves the operator", async () => {
    writeFileSync(file, `${ONE}\n`);
    await start({ token: ONE });
    await start({ token: "ignored-because-of-file", tokenFile: file });
    await start({});
    expect(await valid()).toEqual({ [ONE]: "bootstrap" });
    expect(await stores.operators.listOperators()).toMatchObject([{ name: "bootstrap", role: "admin" }]);
    expect(await actions()).toEqual(["operator.created"]);
    expect(events()).toEqual(["admin.token-imported"]);
  });

  test("with another token replaces it for good: a server that still has the one before does not replace it in turn", async () => {
    for (const token of [ONE, TWO, ONE, TWO, ONE]) await start({ token });
    expect(await valid()).toEqual({ [TWO]: "bootstrap" });
    expect(await actions()).toEqual(["operator.rotated", "operator.created"]);
    const rejected = { event: "admin.token-rejected", level: "error", operator: "bootstrap" };
    const reason = "Operator bootstrap has or had the token. Make another one.";
    expect(log.slice(2)).toMatchObject([
      { ...rejected, reason },
      { ...rejected, reason },
    ]);
  });

  test("and others at the same time leave one token, and one operator", async () => {
    await Promise.all([ONE, TWO, THREE, ONE, TWO, THREE].map((token) => start({ token })));
    expect(Object.values(await valid())).toEqual(["bootstrap"]);
    expect(await stores.operators.listOperators()).toHaveLength(1);
    expect(await actions()).toHaveLength(3);
  });

  test("does not bring an operator back who is revoked, with no token, and says so", async () => {
    await start({ token: ONE });
    await create("ann", THREE);
    await revoke("bootstrap");
    for (const token of [ONE, TWO]) await start({ token });
    expect(await valid()).toEqual({ [THREE]: "ann" });
    const reason =
      "Operator bootstrap is revoked. An admin lets them in again with a new operator of that name: petstore operators create --name bootstrap --role admin";
    const rejected = { event: "admin.token-rejected", reason };
    expect(log.slice(1)).toMatchObject([rejected, rejected]);
    await create("bootstrap", "the-fourth-token-of-all");
    await start({ token: TWO });
    expect(await valid()).toEqual({ [THREE]: "ann", [TWO]: "bootstrap" });
  });

  test("does not bring back the token of a setting that an operator has rotated", async () => {
    await start({ token: ONE });
    await stores.operators.rotateOperator(1, { hash: sha256(TWO), hint: "" }, BY);
    await start({ token: ONE });
    expect(await valid()).toEqual({ [TWO]: "bootstrap" });
  });

  test("with the token of somebody else does not change whose it is, also if that is another setting", async () => {
    await create("ann", ONE);
    writeFileSync(file, TWO);
    await start({ token: ONE, metricsTokenFile: file });
    expect(await valid()).toEqual({ [ONE]: "ann", [TWO]: "metrics" });
    await start({ tokenFile: file, metricsTokenFile: file });
    expect(await valid()).toEqual({ [ONE]: "ann", [TWO]: "metrics" });
    const rejected = log.filter(({ event }) => event === "admin.token-rejected");
    expect(rejected.map(({ operator, reason }) => `${operator}: ${reason}`)).toEqual([
      "bootstrap: Operator ann has or had the token. Make another one.",
      "bootstrap: Operator metrics has or had the token. Make another one.",
    ]);
  });

  test("does not change the role of an operator who has the name", async () => {
    await create("metrics", ONE);
    writeFileSync(file, TWO);
    await start({ metricsTokenFile: file });
    expect(await valid()).toEqual({ [ONE]: "metrics" });
    expect(log).toMatchObject([{ event: "admin.token-rejected", operator: "metrics" }]);
  });

  test.each(["", " \n", "short", "two words in the file", `${ONE}\n${TWO}\n`, "x".repeat(201)])(
    "with a file that contains %j does not start",
    async (text) => {
      writeFileSync(file, text);
      const unusable = /is not valid; it must be 16 to 200|; the file is empty|; the file must have one line/;
      for (const setting of ["tokenFile", "metricsTokenFile"])
        await expect(start({ [setting]: file })).rejects.toThrow(unusable);
      rmSync(file);
      await expect(start({ metricsTokenFile: file })).rejects.toThrow(
        /^--metrics-token-file is .*; it cannot be read: the file does not exist$/,
      );
      expect(await stores.operators.listOperators()).toEqual([]);
    },
  );
});

describe("a file that changes", () => {
  test("replaces the token of its operator and ends their sessions; what cannot be used leaves it", async () => {
    writeFileSync(file, ONE);
    await start({ tokenFile: file });
    const session = {
      cookieHash: sha256("cookie"),
      secretHash: sha256("secret"),
      operatorId: 1,
      tokenHash: sha256(ONE),
      createdAt: 0,
      endsAt: 1,
    };
    await stores.operators.createSession(session, { ...BY, action: "admin.signed-in" });
    const unusable = [
      () => rmSync(file),
      () => replaceFile("short"),
      () => replaceFile(" \n"),
      () => (rmSync(file), mkdirSync(file)),
    ];
    for (const [index, change] of unusable.entries()) {
      change();
      await until(
        () => events().filter((event) => event === "admin.token-unreadable").length === index + 1,
        3_000,
      );
    }
    expect(await valid()).toEqual({ [ONE]: "bootstrap" });
    expect((await stores.operators.readAccess()).sessions.size).toBe(1);
    rmSync(file, { recursive: true });
    replaceFile(TWO);
    await until(async () => TWO in (await valid()), 3_000);
    expect(await valid()).toEqual({ [TWO]: "bootstrap" });
    expect((await stores.operators.readAccess()).sessions.size).toBe(0);
    expect((await actions())[0]).toBe("operator.rotated");
  });

  test("while the database is unavailable is read, and stored afterwards; the last of several counts", async () => {
    let isDown = false;
    let rejected = 0;
    writeFileSync(file, ONE);
    const operators = unavailableWhile(() => isDown && ++rejected > 0);
    await start({ metricsTokenFile: file }, operators);
    isDown = true;
    replaceFile(TWO);
    await until(() => rejected === 1, 3_000);
    replaceFile(THREE);
    await until(() => rejected === 3, 3_000);
    isDown = false;
    await until(async () => THREE in (await valid()), 3_000);
    expect(await valid()).toEqual({ [THREE]: "metrics" });
    expect(await actions()).toEqual(["operator.rotated", "operator.created"]);
    expect(events()).toEqual(["admin.token-imported", "admin.token-not-imported", "admin.token-imported"]);
  });

  test("while the database is unavailable at the start is reported once, and stored afterwards", async () => {
    let rejected = 0;
    writeFileSync(file, ONE);
    await start(
      { metricsTokenFile: file },
      unavailableWhile(() => ++rejected <= 2),
    );
    await until(async () => ONE in (await valid()), 3_000);
    expect(events()).toEqual(["admin.token-not-imported", "admin.token-imported"]);
  });
});

test("sessions and codes of earlier releases that do not say which token is theirs let nobody in", async () => {
  using database = new Database(join(directory, "production.db"));
  const columns = "cookie_hash, secret_hash, operator_id, created_at, ends_at";
  for (const [release, owner] of [
    ["1.1.0", "NULL"],
    ["1.2.0", "1"],
  ] as const) {
    const hash = `'${sha256(release)}'`;
    database.run(`INSERT INTO operator_sessions (${columns}) VALUES (${hash}, ${hash}, ${owner}, 0, 1)`);
    database.run(`INSERT INTO sign_in_codes (code_hash, operator_id, ends_at) VALUES (${hash}, ${owner}, 1)`);
  }
  const { sessions, codes } = await stores.operators.readAccess();
  expect([sessions.size, codes.size]).toEqual([0, 0]);
});
