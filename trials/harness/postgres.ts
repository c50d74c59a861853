import { SQL } from "bun";
import { chmodSync, chownSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "./child.ts";
import { temporaryDirectory } from "./cleanup.ts";
import { type Certificate, onFreePort, type Server, startServer } from "./server.ts";
import { signal } from "./processes.ts";
import { executable, INITDB, PG_BASEBACKUP, POSTGRES } from "./programs.ts";

interface PostgresOptions {
  /** Whether each commit waits for the disk. Otherwise committed data survives `kill`, but not a power failure. */
  readonly durable?: boolean;
  /** The certificate for connections over TLS, which the server then accepts too. */
  readonly tls?: Certificate;
  /** Settings of the server besides those that every one has. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called with each line of its log. */
  readonly onLine?: (line: string) => void;
}

const USER = "petstore";
const LOOPBACK_ONLY = { listen_addresses: "127.0.0.1", unix_socket_directories: "" };

export async function startPostgres(options: PostgresOptions = {}): Promise<Server> {
  const user = unprivilegedUser();
  const directory = temporaryDirectory("postgres", user);
  template ??= initialise(user);
  run(["cp", "-a", template, join(directory, "data")], user);
  return serve(directory, user, options);
}

/** Starts a standby that follows the primary. By default the primary waits for it at each commit. */
export async function startStandby(
  primary: Server,
  { isSynchronous = true, ...options }: PostgresOptions & { readonly isSynchronous?: boolean } = {},
): Promise<Server> {
  const user = unprivilegedUser();
  const directory = temporaryDirectory("standby", user);
  const data = { pgdata: join(directory, "data"), dbname: primary.url, checkpoint: "fast" };
  run([executable(PG_BASEBACKUP), "--write-recovery-conf", "--no-sync", ...flags(data)], user);
  const standby = await serve(directory, user, options);
  await ask(standby, "a standby that streams", (sql) =>
    untilRow(() => sql`SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'`),
  );
  if (!isSynchronous) return standby;
  await ask(primary, "a synchronous standby", async (sql) => {
    await sql.unsafe("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await sql`SELECT pg_reload_conf()`;
    await untilRow(() => sql`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`);
  });
  return standby;
}

async function untilRow(select: () => Promise<readonly unknown[]>): Promise<void> {
  while ((await select()).length === 0) await Bun.sleep(20);
}

/** Runs work on a connection of its own. Work that takes too long ends, because the connection is closed. */
async function ask<T>(server: Server, what: string, work: (sql: SQL) => Promise<T>): Promise<T> {
  const sql = new SQL(server.url, { max: 1 });
  try {
    return await waitFor(what, work(sql));
  } finally {
    void sql.close({ timeout: 0 });
  }
}

/** PostgreSQL waits for the end of the promotion for this time. */
const PROMOTION_SECONDS = 30;

export async function promote(standby: Server): Promise<void> {
  const [{ isDone }] = await ask(
    standby,
    "a promotion",
    (sql) => sql<[{ isDone: boolean }]>`SELECT pg_promote(true, ${PROMOTION_SECONDS}) AS "isDone"`,
  );
  if (!isDone) throw new Error(`the standby was not promoted within ${PROMOTION_SECONDS} s`);
}

/** Makes commits stop waiting for a standby. */
export async function stopWaitingForStandby(primary: Server): Promise<void> {
  await ask(primary, "a change of synchronous_standby_names", async (sql) => {
    await sql.unsafe("ALTER SYSTEM RESET synchronous_standby_names");
    await sql`SELECT pg_reload_conf()`;
  });
}

function serve(
  directory: string,
  user: User | undefined,
  { durable = false, tls, settings: own, onLine }: PostgresOptions,
): Promise<Server> {
  const safety = durable ? {} : { fsync: "off", full_page_writes: "off" };
  return onFreePort((port) => {
    const encryption = tls ? tlsSettings(tls, directory, user) : {};
    const settings = { ...LOOPBACK_ONLY, ...safety, ...encryption, ...own, port: `${port}` };
    return startServer({
      url: `postgres://${USER}@127.0.0.1:${port}/postgres`,
      command: [executable(POSTGRES), "-D", join(directory, "data"), ...flags(settings)],
      cwd: directory,
      user,
      ready: /ready to accept (?:read-only )?connections/,
      // SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves recovery to the next start.
      stop: "SIGINT",
      quit: "SIGQUIT",
      ...(onLine && { onLine }),
    });
  });
}

/** The settings of TLS. PostgreSQL must own its private key. */
function tlsSettings({ certFile, keyFile }: Certificate, directory: string, user: User | undefined) {
  const settings = {
    ssl: "on",
    ssl_cert_file: join(directory, "tls.crt"),
    ssl_key_file: join(directory, "tls.key"),
  };
  copyFileSync(certFile, settings.ssl_cert_file);
  copyFileSync(keyFile, settings.ssl_key_file);
  chmodSync(settings.ssl_key_file, 0o600);
  if (user) chownSync(settings.ssl_key_file, user.uid, user.gid);
  return settings;
}

/** Ends the connections of clients over TLS, and returns their number. */
export async function endEncryptedSessions({ url }: Server): Promise<number> {
  await using sql = new SQL(url, { max: 1 });
  const ended = await sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE ssl AND backend_type = 'client backend'`;
  return ended.length;
}

/** Replaces the certificate for new connections. A server that is stopped or frozen uses it when it runs again. */
export function replaceCertificate(server: Server, certificate: Certificate): void {
  tlsSettings(certificate, server.directory, unprivilegedUser());
  if (server.isRunning) signal(server.pid, "SIGHUP");
}

function flags(settings: Record<string, string>): string[] {
  return Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
}

/** The files of initdb, which runs once: it takes over a second, and copying its files a tenth of that. */
let template: string | undefined;

function initialise(user: User | undefined): string {
  const data = join(temporaryDirectory("postgres-template", user), "data");
  const options = {
    pgdata: data,
    username: USER,
    auth: "trust",
    encoding: "UTF8",
    locale: "C",
    "wal-segsize": "1",
  };
  run([executable(INITDB), "--no-sync", "--no-instructions", ...flags(options)], user);
  return data;
}

function run(command: string[], user: User | undefined): void {
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C" };
  const { exitCode, stderr } = Bun.spawnSync(command, { env, cwd: "/", stderr: "pipe", ...user });
  if (exitCode !== 0) throw new Error(`${command[0]} failed: ${stderr.toString()}`);
}

type User = { readonly uid: number; readonly gid: number };

/** A user to run PostgreSQL, which does not run as root. */
export function unprivilegedUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8");
  const user = /^postgres:[^:]*:(\d+):(\d+):/m.exec(accounts) ?? /^nobody:[^:]*:(\d+):(\d+):/m.exec(accounts);
  if (user === null) throw new Error("PostgreSQL does not run as root, and there is no user nobody.");
  return { uid: Number(user[1]), gid: Number(user[2]) };
}

/** The test runner sets this variable, so that all test files share one server. */
export const POSTGRES_VARIABLE = "PETSTORE_TEST_POSTGRES_URL";

let server: Promise<string> | undefined;

/** Creates a new, empty database on a server that tests share. */
export async function postgresUrl(): Promise<string> {
  server ??= Promise.resolve(process.env[POSTGRES_VARIABLE] ?? startPostgres().then(({ url }) => url));
  const url = new URL(await server);
  const name = `petstore_test_${crypto.randomUUID().replaceAll("-", "")}`;
  await using administration = new SQL(url.href, { max: 1 });
  await administration.unsafe(`CREATE DATABASE ${name}`);
  url.pathname = `/${name}`;
  return url.href;
}
