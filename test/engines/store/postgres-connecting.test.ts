import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Unavailable } from "../../../src/api/errors.ts";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { AT, KEY_ID, rex } from "../../conformance/store-fixture.ts";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { until } from "../../timing.ts";

const authority = new CertificateAuthority();
const valid = authority.issue("IP:127.0.0.1");
const expired = authority.issue("IP:127.0.0.1", "-days", "-1");
const ofAnotherHost = authority.issue("DNS:elsewhere.example");
const ofAnotherAuthority = new CertificateAuthority().issue("IP:127.0.0.1");
const server = await startPostgres({ tls: valid });
const admin = new SQL(server.url, { max: 1 });
// The runtime may stop to read from a child's pipe when something arrives there while a TLS handshake fails.
await admin`ALTER SYSTEM SET log_min_messages = 'panic'`;
await admin`SELECT pg_reload_conf()`;
await admin`CREATE ROLE shop LOGIN`;
await admin`CREATE DATABASE shop OWNER shop`;
const url = new URL(`${server.url}?sslmode=verify-full&sslrootcert=${authority.caFile}`);
[url.username, url.pathname] = ["shop", "/shop"];

let stores: PostgresStores;
beforeAll(async () => void (stores = await openPostgres(url.href)));
afterAll(async () => {
  await stores.close();
  await admin.close({ timeout: 0 });
  await server.stop();
});

async function setting(name: string): Promise<string> {
  const [row] = await admin<[{ value: string }]>`SELECT current_setting(${name}) AS value`;
  return row.value;
}

/** Replaces the content of the server's files, whose names are settings, and makes it read them. */
async function replace(contents: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(contents)) writeFileSync(await setting(name), content);
  await admin`SELECT pg_reload_conf()`;
}

/** Resolves when a new connection shows that the server has applied a change. */
async function untilConnecting(outcome: "fails" | "succeeds"): Promise<void> {
  await until(async () => {
    const sql = new SQL(url.href, { max: 1 });
    const actual = await sql`SELECT 1`.then(
      () => "succeeds",
      () => "fails",
    );
    await sql.close({ timeout: 0 });
    return actual === outcome;
  }, 10_000);
}

const TLS_FILES = (cert: typeof valid) => ({
  ssl_cert_file: readFileSync(cert.certFile, "utf8"),
  ssl_key_file: readFileSync(cert.keyFile, "utf8"),
});
const rules = readFileSync(await setting("hba_file"), "utf8");
const movedCa = `${authority.caFile}.moved`;

const DATABASE_IN_USE = "55006";

type Change = () => unknown;
const statement = (text: string) => () => admin.unsafe(text);
const endSessions = () =>
  admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'`;
/** A database in use cannot be renamed, and stores connect again at any time. */
const rename = (from: string, to: string) => async () => {
  for (;;) {
    await endSessions();
    try {
      return await admin.unsafe(`ALTER DATABASE ${from} RENAME TO ${to}`);
    } catch (error) {
      if (!(error instanceof SQL.PostgresError && error.errno === DATABASE_IN_USE)) throw error;
    }
  }
};
const certificate = (cert: typeof valid) => () => replace(TLS_FILES(cert));
const access = (line: string) => () => replace({ hba_file: `host all petstore all trust\n${line}` });
const FAULTS: readonly [name: string, begin: Change, end: Change][] = [
  ["the certificate has expired", certificate(expired), certificate(valid)],
  ["the certificate is that of another host", certificate(ofAnotherHost), certificate(valid)],
  ["the certificate is of another authority", certificate(ofAnotherAuthority), certificate(valid)],
  [
    "the file of the authority is missing",
    () => renameSync(authority.caFile, movedCa),
    () => renameSync(movedCa, authority.caFile),
  ],
  ["pg_hba.conf rejects the user", access("host all all all reject\n"), () => replace({ hba_file: rules })],
  ["pg_hba.conf does not name the user", access(""), () => replace({ hba_file: rules })],
  [
    "pg_hba.conf wants a password",
    access("host all all all scram-sha-256\n"),
    () => replace({ hba_file: rules }),
  ],
  ["the role cannot log in", statement("ALTER ROLE shop NOLOGIN"), statement("ALTER ROLE shop LOGIN")],
  [
    "the role has too many connections",
    statement("ALTER ROLE shop CONNECTION LIMIT 0"),
    statement("ALTER ROLE shop CONNECTION LIMIT -1"),
  ],
  [
    "the database allows no connections",
    statement("ALTER DATABASE shop ALLOW_CONNECTIONS false"),
    statement("ALTER DATABASE shop ALLOW_CONNECTIONS true"),
  ],
  [
    "the database does not allow the role to connect",
    statement("REVOKE CONNECT ON DATABASE shop FROM PUBLIC, shop"),
    statement("GRANT CONNECT ON DATABASE shop TO PUBLIC, shop"),
  ],
  ["the database has another name", rename("shop", "other"), rename("other", "shop")],
];

/** One for each pool. */
const calls = ({ clientStore, operatorPetStore, keys, storedValues }: PostgresStores): (() => unknown)[] => [
  () => operatorPetStore.getPet(1n),
  () => clientStore.createPet(rex, AT),
  () => clientStore.placeOrder({ keyId: KEY_ID, petId: 1n }, AT),
  () => storedValues.saveValues({ "public-url": "http://a" }),
  () => keys.findCredential("0".repeat(64)),
];

/** The error of a call. A connection that PostgreSQL was accepting when the fault began is a session, and is ended. */
async function withoutSession(call: () => unknown): Promise<unknown> {
  for (;;) {
    await endSessions();
    try {
      await call();
    } catch (error) {
      return error;
    }
  }
}

test.each(FAULTS)(
  "connections fail because %s: every call is Unavailable until they succeed",
  async (_, begin, end) => {
    await begin();
    try {
      await untilConnecting("fails");
      for (let round = 0; round < 2; round++) {
        for (const call of calls(stores)) expect(await withoutSession(call)).toBeInstanceOf(Unavailable);
      }
    } finally {
      await end();
    }
    await untilConnecting("succeeds");
    for (const call of calls(stores)) {
      await until(async () => {
        const error = await Promise.try(call).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        if (error !== undefined) expect(error).toBeInstanceOf(Unavailable);
        return error === undefined;
      }, 10_000);
    }
  },
);
