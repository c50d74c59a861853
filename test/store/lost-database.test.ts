import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { tableStoreOf } from "../../src/archive/open-tables.ts";
import { DataDirectory } from "../../src/data-directory.ts";
import { dataIn, directoryAt } from "../data-directory.ts";
import { newQuota } from "../../src/domain/rate-limit.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { until } from "../timing.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const pet = { name: "Rex", categoryId: 1n };

const LOSSES: readonly [string, (path: string) => void][] = [
  ["deleted", (path) => rmSync(path)],
  ["renamed", (path) => renameSync(path, `${path}.old`)],
  [
    "replaced",
    (path) => {
      copyFileSync(path, `${path}.new`);
      renameSync(`${path}.new`, path);
    },
  ],
  ["deleted with its directory", (path) => rmSync(dirname(path), { recursive: true })],
  ["left without its log", (path) => rmSync(`${path}-wal`)],
];

test.each(LOSSES)("a database that is %s acknowledges nothing more, and is saved", async (_loss, lose) => {
  using directory = disposableDirectory();
  mkdirSync(directory.path("data"));
  const [path, to] = [directory.path("data/production.db"), directory.path("data/production-rescued.db")];
  let isRescued = false;
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const { clientStore, close } = openSqlite(path, {
    rescue: { to, onRescue: () => (isRescued = true), onFailure },
  });
  await clientStore.createPet(pet, 0);
  lose(path);
  await expect(clientStore.createPet(pet, 0)).rejects.toThrow(`${path} was deleted or replaced`);
  await until(() => isRescued, 2_000);
  await expect(clientStore.createPet(pet, 0)).rejects.toThrow("deleted or replaced");
  await close();
  expect(failures).toEqual([]);
  expect(existsSync(`${path}-wal`)).toBe(false);

  const rescued = openSqlite(to);
  expect((await rescued.operatorPetStore.listPets({ limit: 9 })).items).toHaveLength(1);
  await rescued.close();
});

test.each(LOSSES)("a limits database that is %s is written anew, with all quotas", async (_loss, lose) => {
  using directory = disposableDirectory();
  mkdirSync(directory.path("data"));
  const path = directory.path("data/limits.db");
  const failures: unknown[] = [];
  let rescues = 0;
  const onFailure = (error: unknown) => void failures.push(error);
  const clientStore = openQuotaStore(path, { onRescue: () => rescues++, onFailure });
  const save = (id: number) => clientStore.save([[{ kind: "key", id }, newQuota()]]);
  save(1);
  lose(path);
  // The rescue needs no request.
  await until(() => rescues === 1, 2_000);
  save(2);
  lose(path);
  save(3);
  expect(rescues).toBe(2);
  lose(path);
  clientStore.close();
  expect([rescues, failures]).toEqual([3, []]);

  const next = openQuotaStore(path);
  expect([...next.load()].map(([{ id }]) => id)).toEqual([1, 2, 3]);
  next.close();
});

test("a limits database in whose place an older copy is put, with its log, is written anew, with later quotas", async () => {
  using directory = disposableDirectory();
  const path = directory.path("limits.db");
  let isRescued = false;
  const quotaStore = openQuotaStore(path, { onRescue: () => (isRescued = true), onFailure() {} });
  const save = (id: number) => quotaStore.save([[{ kind: "key", id }, newQuota()]]);
  save(1);
  const files = [path, `${path}-wal`];
  for (const file of files) copyFileSync(file, `${file}.old`);
  save(2);
  for (const file of files) renameSync(`${file}.old`, file);
  await until(() => isRescued, 2_000);
  expect([...quotaStore.load()].map(([{ id }]) => id)).toEqual([1, 2]);
  quotaStore.close();
});

test("a rescue that fails is reported once and tried again; closing saves what the timer has not", async () => {
  using directory = disposableDirectory();
  const [path, to] = [directory.path("production.db"), directory.path("rescued/production.db")];
  writeFileSync(directory.path("rescued"), "not a directory");
  const failures: unknown[] = [];
  const { clientStore, close } = openSqlite(path, {
    rescue: { to, onRescue() {}, onFailure: (error) => void failures.push(error) },
  });
  await clientStore.createPet(pet, 0);
  rmSync(path);
  await until(() => failures.length > 0, 2_000);
  rmSync(directory.path("rescued"));
  mkdirSync(directory.path("rescued"));
  writeFileSync(`${to}.partial`, "what an interrupted rescue has left");
  await close();
  expect([failures.length, statSync(to).mode & 0o777]).toEqual([1, 0o600]);
});

test("an import creates no database where there was one", async () => {
  using directory = disposableDirectory();
  const location = dataIn(directory.path("data"));
  location.directory.create();
  writeFileSync(location.directory.files.adminToken, "x");
  await expect(tableStoreOf(location)).rejects.toThrow("is missing or empty, but there was a database");
});

test("a missing or empty database beside what a server left is not begun anew, unless that is asked for", () => {
  using temporary = disposableDirectory();
  const path = temporary.path("data");
  const directory = directoryAt(path);
  const withNew = new DataDirectory({ path, environment: "production", allowsNewDatabase: true });
  const { database, quotas, adminToken, rescued } = directory.files;
  expect(directory.findLostDatabase()).toBeUndefined();
  directory.create();
  expect(directory.findLostDatabase()).toBeUndefined();
  for (const left of [quotas, adminToken, `${path}/production-replaced-2026`]) {
    writeFileSync(left, "x");
    expect(() => directory.rejectLostDatabase()).toThrow(
      `${database} is missing or empty, but there was a database: see ${left}; restore a backup with petstore restore, or run petstore serve --new-database to begin anew`,
    );
    writeFileSync(database, "");
    expect(() => directory.rejectLostDatabase()).toThrow("missing or empty");
    withNew.rejectLostDatabase();
    writeFileSync(database, "x");
    directory.rejectLostDatabase();
    rmSync(database);
    rmSync(left);
  }
  writeFileSync(rescued, "x");
  writeFileSync(database, "x");
  expect(() => withNew.rejectLostDatabase()).toThrow(
    `the server saved everything to ${rescued}; run rm -f ${database}* && mv ${rescued} ${database} to go on with it`,
  );
});
