import { SQL } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { charge, chargedFolder } from "./charges.ts";
import { onFreePort } from "./port.ts";
import { POSTGRESQL, provide } from "./programs.ts";
import { launch, type Server } from "./server.ts";

export interface PostgresOptions {
  /** Waits for the disk at every commit. Without it, what was committed survives `kill` but not a loss of power. */
  readonly durable?: boolean;
}

const USER = "petstore";
const LOOPBACK_ONLY = { listen_addresses: "127.0.0.1", unix_socket_directories: "" };

/** A PostgreSQL server of one's own, to stop, kill or freeze. */
export async function startPostgres({ durable = false }: PostgresOptions = {}): Promise<Server> {
  const programs = provide(POSTGRESQL);
  const user = unprivileged();
  const folder = chargedFolder("postgres", user);
  template ??= initialise(programs, user);
  run(["cp", "-a", template, join(folder, "data")], user);
  const safety = durable ? {} : { fsync: "off", full_page_writes: "off" };
  return onFreePort((port) => {
    const settings = { ...LOOPBACK_ONLY, ...safety, port: `${port}` };
    return launch({
      url: `postgres://${USER}@127.0.0.1:${port}/postgres`,
      command: [join(programs, "postgres"), "-D", join(folder, "data"), ...flags(settings)],
      folder,
      user,
      ready: "ready to accept connections",
      // SIGINT ends sessions and writes everything down; SIGQUIT leaves that to the next start.
      signals: { stop: "SIGINT", quit: "SIGQUIT" },
    });
  });
}

function flags(settings: Record<string, string>): string[] {
  return Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
}

/** Making the files of a server takes over a second and copying them a tenth of that, so they are made once. */
let template: string | undefined;

function initialise(programs: string, user: User | undefined): string {
  const data = join(chargedFolder("postgres-template", user), "data");
  const options = {
    pgdata: data,
    username: USER,
    auth: "trust",
    encoding: "UTF8",
    locale: "C",
    "wal-segsize": "1",
  };
  run([join(programs, "initdb"), "--no-sync", "--no-instructions", ...flags(options)], user);
  return data;
}

function run(command: string[], user: User | undefined): void {
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C" };
  const { exitCode, stderr } = Bun.spawnSync(command, { env, cwd: "/", stderr: "pipe", ...user });
  if (exitCode !== 0) throw new Error(`${command[0]} failed: ${stderr.toString()}`);
}

type User = { readonly uid: number; readonly gid: number };

/** PostgreSQL refuses to run as root. */
function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8").matchAll(/^(postgres|nobody):[^:]*:(\d+):(\d+):/gm);
  const ids = new Map(
    [...accounts].map(([, name, uid, gid]) => [name, { uid: Number(uid), gid: Number(gid) }]),
  );
  const user = ids.get("postgres") ?? ids.get("nobody");
  if (user === undefined)
    throw new Error("The tests run as root and find no user nobody to run PostgreSQL as.");
  return user;
}

let shared: Promise<string> | undefined;
let databases = 0;

/** A new, empty database, on a server that the whole run of the tests shares. */
export async function postgresUrl(): Promise<string> {
  shared ??= sharedServer();
  const server = await shared;
  const name = `petstore_test_${process.pid}_${++databases}`;
  await administer(server, `CREATE DATABASE ${name}`);
  if (process.env.PETSTORE_TEST_POSTGRES_URL !== undefined) charge({ database: name, on: server });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function sharedServer(): Promise<string> {
  return process.env.PETSTORE_TEST_POSTGRES_URL ?? (await startPostgres()).url;
}

let administration: SQL | undefined;

async function administer(url: string, sql: string): Promise<void> {
  administration ??= new SQL(url, { max: 1 });
  await administration.unsafe(sql);
}
