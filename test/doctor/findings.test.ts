import { describe, expect, test } from "bun:test";
import { DataDirectory } from "../../src/data-directory.ts";
import { checkClock } from "../../src/doctor/clock.ts";
import { checkDataDirectory, checkOpenFiles } from "../../src/doctor/files.ts";
import type { PossibleFinding } from "../../src/doctor/finding.ts";
import { validityProblem } from "../../src/doctor/certificate.ts";
import { postgresProblems } from "../../src/doctor/postgres-problems.ts";
import { checkReplication } from "../../src/doctor/replication.ts";
import { backupFinding, schemaFinding } from "../../src/doctor/stored-data.ts";
import { cliDirectory } from "../cli/cli.ts";

const NOW = Date.parse("2026-11-15T12:00:00Z");
const DAY_MS = 86_400_000;

/** Findings as lines. */
const shown = (...findings: readonly PossibleFinding[]) =>
  findings.flatMap((each) =>
    each ? [each.level, each.message, each.remedy].filter((part) => part !== undefined).join(": ") : [],
  );

describe("the clock", () => {
  const found = (now: number, newestTime?: number, ...differences: readonly number[]) =>
    shown(
      ...checkClock({
        now,
        newestTime,
        comparisons: differences.map((differenceMs) => ({ name: "PostgreSQL", differenceMs })),
      }),
    );
  const remedy = "synchronize the clock with NTP: timedatectl set-ntp true";

  test("of a machine is wrong before the release", () => {
    const released = Date.parse("2026-11-01T00:00:00Z");
    expect(found(released)).toEqual(["ok: it is 2026-11-01T00:00:00.000Z"]);
    expect(found(released - 1, released * 2, 9_000)).toEqual([
      `error: it is 2026-10-31T23:59:59.999Z by this machine, before this release was made: ${remedy}`,
    ]);
  });

  test("may differ from that of others by two seconds", () => {
    expect(found(NOW, NOW + 2_000, 2_000, -2_000)).toEqual(["ok: it is 2026-11-15T12:00:00.000Z"]);
    expect(found(NOW, NOW + 2_001, 2_049, -2_001)).toEqual([
      `warning: the clock of PostgreSQL is 2.0 s ahead of this machine's: ${remedy}, on both machines`,
      `warning: the clock of PostgreSQL is 2.0 s behind this machine's: ${remedy}, on both machines`,
      `warning: the data has a key of 2026-11-15T12:00:02.001Z, which is later than now (2026-11-15T12:00:00.000Z): ${remedy}`,
    ]);
  });
});

test("the last backup is old after two days", () => {
  const remedy = "run petstore backup every night, as docs/backup.md shows";
  const text = "the last backup was made 2026-11-13T12:00:00.000Z";
  const at = NOW - 2 * DAY_MS;
  expect(shown(backupFinding(at, NOW), backupFinding(at, NOW + 1), backupFinding(undefined, NOW))).toEqual([
    `ok: ${text}`,
    `warning: ${text}: ${remedy}`,
    `warning: petstore backup has never been run on this database: ${remedy}`,
  ]);
});

test("the schema is of this release, of an earlier one, or of a newer one that may allow this one", () => {
  const found = (version: number, rejection?: string) =>
    schemaFinding({ version, supportedVersion: 9, rejection });
  expect(shown(found(9), found(8), found(10), found(10, "too new"))).toEqual([
    "ok: the schema has version 9, the newest",
    "warning: the schema has version 8, and the next start migrates it to 9: make a backup before you start this release",
    "ok: the schema has version 10, of a newer release, and this one can run on it",
    "error: too new: install that release, or restore a backup from before the upgrade",
  ]);
});

test("a certificate is to be renewed 14 days before its end", () => {
  const validTo = new Date(NOW).toUTCString();
  const validFrom = new Date(NOW - 90 * DAY_MS).toUTCString();
  const renew = "renew the certificate; a running server takes the new files within seconds";
  const at = (now: number) => validityProblem({ validFrom, validTo }, now);
  expect(shown(at(NOW - 90 * DAY_MS - 1), at(NOW - 90 * DAY_MS), at(NOW - 14 * DAY_MS))).toEqual([
    `error: the certificate is valid from ${validFrom} on: check the clock, or wait until then`,
  ]);
  expect(shown(at(NOW - 14 * DAY_MS + 1), at(NOW), at(NOW + 1))).toEqual([
    `warning: the certificate expires on ${validTo}: ${renew}`,
    `warning: the certificate expires on ${validTo}: ${renew}`,
    `error: the certificate expired on ${validTo}: ${renew}`,
  ]);
});

test("the disk has too little space below 0.1 GB, and little below 1 GB", () => {
  const path = cliDirectory();
  const found = (bytes: number) => {
    class Disk extends DataDirectory {
      override freeBytes = () => bytes;
    }
    return checkDataDirectory(new Disk({ path, environment: "production" })).at(-1);
  };
  const remedy = "free space or enlarge the disk: without space, every write gets 503";
  expect(shown(...[1e9, 1e9 - 1, 1e8, 1e8 - 1].map(found))).toEqual([
    `ok: 1.0 GB are free on the disk of ${path}`,
    `warning: 1.0 GB are free on the disk of ${path}: ${remedy}`,
    `warning: 0.1 GB are free on the disk of ${path}: ${remedy}`,
    `error: 0.1 GB are free on the disk of ${path}: ${remedy}`,
  ]);
});

test("the limit of open files allows as many connections as are set, or 10,000", () => {
  const remedy = "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 in a shell";
  const found = (maxConnections: number | undefined, possible: number) =>
    checkOpenFiles(maxConnections, possible);
  expect(shown(found(undefined, 10_000), found(undefined, 9_999), found(500, 500), found(500, 499))).toEqual([
    "ok: the limit allows 10,000 connections",
    `warning: the limit allows 9,999 of 10,000 connections: ${remedy}`,
    "ok: the limit allows 500 connections",
    `warning: the limit allows 499 of 500 connections: ${remedy}`,
  ]);
});

test("PostgreSQL: its version, its encoding, whether it takes writes and keeps them, and its connections", () => {
  const sound = {
    version: 14,
    oldestVersion: 14,
    encoding: "UTF8",
    isStandby: false,
    isDurable: true,
    // A server needs 12 connections, and another server, commands and PostgreSQL itself 27.
    freeConnections: 12,
    maxConnections: 51,
    servers: 2,
    canCreateSchema: false,
    schema: { version: 1, supportedVersion: 1, rejection: undefined },
    replication: {
      synchronousStandbyNames: "",
      waitsForStandbys: false,
      connectedStandbys: [],
      waitingCommits: 0,
    },
    lastBackupAt: undefined,
  };
  const isNew = { schema: { ...sound.schema, version: 0 } };
  expect(shown(...postgresProblems(sound))).toEqual([]);
  expect(shown(...postgresProblems({ ...sound, ...isNew, canCreateSchema: true }))).toEqual([]);
  const wrong = {
    version: 13,
    encoding: "LATIN1",
    isStandby: true,
    isDurable: false,
    freeConnections: 11,
    maxConnections: 50,
    ...isNew,
  };
  expect(shown(...postgresProblems({ ...sound, ...wrong }))).toEqual([
    "error: version 13 is too old: use PostgreSQL 14 or newer",
    "error: the encoding of the database is LATIN1: create a database with ENCODING 'UTF8' TEMPLATE template0",
    "error: the server is a standby and accepts no writes: connect to the primary",
    "warning: a power failure can lose writes that were acknowledged to clients: set fsync = on and synchronous_commit = on",
    "warning: 11 more connections are possible, and a server needs 12: raise max_connections; docs/deployment.md has the arithmetic",
    "warning: max_connections is 50, and 2 servers with what else connects may need 51: set max_connections to 51 or more",
    "error: the user may not create the schema of the environment: GRANT CREATE ON DATABASE … TO …, or run petstore migrate once as the owner",
  ]);
});

test("replication: which standbys a commit waits for, and whether they are there", () => {
  const found = (setting: string, standbys: string, waitingCommits = 0) =>
    checkReplication({
      synchronousStandbyNames: setting,
      waitsForStandbys: setting !== "",
      connectedStandbys: standbys.split(" ").filter(Boolean),
      waitingCommits,
    });
  const restore = (setting: string, connected: string) =>
    `start the standby, or set synchronous_standby_names to one that runs (it is '${setting}'; connected: ${connected})`;
  const another =
    "connect another standby; with synchronous_standby_names = 'ANY 1 (…)' one of them is enough (docs/deployment.md)";
  const lost = "every write gets 503";
  expect(
    shown(
      found("", ""),
      found("", "a b"),
      found("ANY 1 (*)", "a b"),
      found("a", "a"),
      found("ANY 2 (*)", "a b"),
      found("a", ""),
      found("a", "b"),
      found("ANY 3 (*)", "a b"),
      found("a", "a", 1),
      found("a", "a", 2),
    ),
  ).toEqual([
    "ok: there is no standby: backups are what protects against the loss of the machine",
    "ok: no commit waits for a standby (connected: a, b): a promotion may lose the last writes",
    "ok: a commit waits for 1 of 2 standbys",
    `warning: a commit waits for a standby, and only one is connected: without it, ${lost}: ${another}`,
    `warning: a commit waits for 2 standbys, and no more are connected: without all of them, ${lost}: ${another}`,
    `error: a commit needs 1 synchronous standby, and 0 of them are connected: ${lost}: ${restore("a", "none")}`,
    `error: a commit needs 1 synchronous standby, and 0 of them are connected: ${lost}: ${restore("a", "b")}`,
    `error: a commit needs 3 synchronous standbys, and 2 of them are connected: ${lost}: ${restore("ANY 3 (*)", "a, b")}`,
    `error: 1 commit waits for a synchronous standby: ${lost}: ${restore("a", "a")}`,
    `error: 2 commits wait for a synchronous standby: ${lost}: ${restore("a", "a")}`,
  ]);
});
