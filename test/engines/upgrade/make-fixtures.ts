/*
 * Makes the fixtures of the upgrade tests anew: `bun test/engines/upgrade/make-fixtures.ts`, in a clone that has the
 * commit of the previous release. They are its program in one file, databases that it fills on SQLite and PostgreSQL,
 * and a backup.
 */

import { Database } from "bun:sqlite";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { outputOf } from "../../../trials/harness/machine.ts";
import { runProgram } from "../../../trials/harness/child.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { executable, PG_DUMP } from "../../../trials/harness/programs.ts";
import { bearer } from "../../bearer.ts";
import {
  EARLIER_RELEASES,
  earlierProgram,
  fixturesOf,
  type KeyName,
  PREVIOUS_RELEASE,
  PROGRAM_FILE,
  type Recorded,
  SHOP,
} from "./previous-release.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const FIXTURES = fixturesOf(PREVIOUS_RELEASE);

/** Makes the program with the dependencies that it had, and returns the path of its source. */
async function makeProgram(): Promise<string> {
  const directory = temporaryDirectory("previous-source");
  const archive = join(directory, "source.tar");
  outputOf(["git", "-C", ROOT, "archive", "-o", archive, EARLIER_RELEASES[PREVIOUS_RELEASE].commit]);
  outputOf(["tar", "-x", "-C", directory, "-f", archive]);
  outputOf(["npm", "ci", "--silent", "--prefix", directory]);
  const main = join(directory, "src/cli/main.ts");
  const { outputs } = await Bun.build({
    entrypoints: [main],
    target: "bun",
    minify: true,
  });
  const [program] = outputs;
  if (program === undefined) throw new Error("the previous release could not be bundled");
  mkdirSync(FIXTURES, { recursive: true });
  writeFileSync(join(FIXTURES, PROGRAM_FILE), gzipSync(await program.arrayBuffer(), { level: 9 }));
  return main;
}

const PLANS: Readonly<Record<KeyName, readonly string[]>> = {
  shop: ["pro", ...Object.entries(SHOP).flatMap(([flag, value]) => [`--${flag}`, value])],
  mobile: ["business"],
  load: ["enterprise", "--per-minute", "1000000000", "--per-day", "1000000000"],
  rolled: ["pro"],
  revoked: ["pro"],
  banned: ["free"],
};

const PETS = [
  '{"name":"Rex","categoryId":7,"status":"available"}',
  '{"name":"Größe 🐕 \\u0001 \\" \\\\","categoryId":-1}',
  '{"name":"Exact","categoryId":9007199254740993,"status":"available"}',
  '{"name":"Least","categoryId":-9223372036854775808,"status":"pending"}',
  '{"name":"Greatest","categoryId":9223372036854775807,"status":"sold"}',
  ...Array.from(
    { length: 130 },
    (_, i) => `{"name":"Pet number ${i}","categoryId":${i},"status":"available"}`,
  ),
];

/** Uses the previous release as clients and operators do, and records what it responds. */
async function fill(storage: readonly string[]): Promise<Recorded> {
  const program = earlierProgram(PREVIOUS_RELEASE);
  const command = async (...args: string[]) => {
    const { code, out, err } = await runProgram([...program, "keys", ...args, "--json", ...storage]);
    if (code !== 0) throw new Error(err);
    return JSON.parse(out);
  };
  const created: Partial<Record<KeyName, { id: string; key: string }>> = {};
  for (const name of Object.keys(PLANS) as KeyName[]) {
    created[name] = await command("create", "--name", name, "--plan", ...PLANS[name]);
  }
  const keys = created as Record<KeyName, { id: string; key: string }>;
  const rolled = await command("rotate", `${keys.rolled.id}`, "--overlap", "30d");
  const entries = Object.entries(keys).map(([name, { key }]) => [name, key]);
  const secrets: Recorded["secrets"] = { ...Object.fromEntries(entries), rolled: String(rolled.key) };
  await command("revoke", `${keys.revoked.id}`);

  const server = await startPetstore([...storage, "--port", "0"], [], program);
  const send = async (key: KeyName, path: string, init: RequestInit = {}) => {
    const headers = { ...init.headers, ...bearer(secrets[key]) };
    return fetch(server.url + path, { ...init, headers });
  };
  const post = (key: KeyName, path: string, body: string, headers: Record<string, string> = {}) =>
    send(key, path, { method: "POST", body, headers: { "Content-Type": "application/json", ...headers } });
  const text = async (key: KeyName, path: string) => (await send(key, path)).text();

  for (const pet of PETS) await post("load", "/pets", pet);
  for (const petId of [1, 6, 7]) await post("shop", "/store/orders", `{"petId":${petId}}`);
  await post("mobile", "/store/orders", '{"petId":8}');
  const patch = { method: "PATCH", headers: { "Content-Type": "application/json" } };
  await send("shop", "/store/orders/2", { ...patch, body: '{"status":"completed"}' });
  await send("shop", "/store/orders/3", { ...patch, body: '{"status":"cancelled"}' });
  const idempotent = {
    headers: { "Idempotency-Key": "before-the-upgrade" },
    body: '{"name":"Once","categoryId":1}',
  };
  const response = await (await post("shop", "/pets", idempotent.body, idempotent.headers)).text();

  // Ten requests, each after the grace period of one second, ban a key that is at its limit.
  for (let i = 0; i < 61; i++) await text("banned", "/pets?limit=1");
  for (let i = 0; i < 10; i++) {
    await Bun.sleep(1_100);
    await text("banned", "/pets?limit=1");
  }

  const paths: readonly (readonly [KeyName, string])[] = [
    ["shop", "/pets?limit=100"],
    ["shop", "/pets?status=pending"],
    ["rolled", "/pets/2"],
    ["rolled", "/pets/3"],
    ["shop", "/store/orders"],
    ["shop", "/store/orders/2"],
    ["mobile", "/store/orders"],
  ];
  const responses: Recorded["responses"][number][] = [];
  for (const [key, path] of paths) responses.push({ key, path, body: await text(key, path) });
  const statuses: Partial<Record<KeyName, number>> = {};
  for (const name of Object.keys(PLANS) as KeyName[])
    statuses[name] = (await send(name, "/pets?limit=1")).status;
  const last = await send("mobile", "/pets?limit=1");
  await server.stop();
  return {
    at: Date.now(),
    secrets,
    previousSecret: keys.rolled.key,
    responses,
    statuses: statuses as Recorded["statuses"],
    idempotent: { ...idempotent, response },
    remaining: Number(last.headers.get("x-ratelimit-remaining")),
  };
}

const write = (name: string, recorded: Recorded) =>
  writeFileSync(join(FIXTURES, `${name}.json`), `${JSON.stringify(recorded, null, 2)}\n`);

async function makeSqlite(source: string): Promise<void> {
  const data = temporaryDirectory("previous-data");
  write("sqlite", await fill(["--data", data]));
  for (const name of ["production.db", "production-limits.db"]) {
    // One file without a write-ahead log beside it, and without free pages.
    const database = new Database(join(data, name));
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    database.run("VACUUM");
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
    copyFileSync(join(data, name), join(FIXTURES, name));
  }
  // The program in one file has no threads, which a backup needs.
  const backups = join(FIXTURES, "backups");
  rmSync(backups, { recursive: true, force: true });
  outputOf([
    process.execPath,
    "--no-env-file",
    "--config=/dev/null",
    source,
    "backup",
    backups,
    "--data",
    data,
  ]);
  rmSync(join(backups, ".production.lock"));
}

async function makePostgres(): Promise<void> {
  const url = await postgresUrl();
  write("postgres", await fill(["--database-url", url]));
  const flags = "--no-owner --no-privileges --inserts --rows-per-insert=100 --schema=production".split(" ");
  const dump = outputOf([executable(PG_DUMP), ...flags, `--dbname=${url}`]);
  // Commands of psql and settings of one version of PostgreSQL are left out.
  const lines = dump
    .split("\n")
    .filter((line) => !/^(?:\\|SET |SELECT pg_catalog\.set_config|--)/.test(line));
  writeFileSync(join(FIXTURES, "postgres.sql"), lines.join("\n").replaceAll(/\n{3,}/g, "\n\n"));
}

await makeSqlite(await makeProgram());
await makePostgres();
process.exit(0);
