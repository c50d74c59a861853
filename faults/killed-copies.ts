/** petstore copy, to PostgreSQL and Valkey and back. */
import { SQL } from "bun";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import type { Usage } from "../src/domain/rate-limit.ts";
import { UsageCopy } from "../src/rate-limit/valkey/maintenance.ts";
import { type Contents, differencesBetween } from "../src/archive/contents.ts";
import { postgresTables } from "../src/store/postgres/tables.ts";
import type { TableStore } from "../src/store/tables.ts";
import { openUsageStore } from "../src/store/sqlite/usage-store.ts";
import type { Attempt, KilledCommand } from "./killed-commands.ts";
import { contentsIn, type Fixture, sqliteIn, succeed, USED } from "./killed-fixture.ts";

/** Problems of a copy: what is visible must be all of it. */
async function checkCopy(end: TableStore, contents: Contents): Promise<string[]> {
  if (!(await end.exists())) return [];
  const different = differencesBetween(contents, await contentsIn(end, contents.counters));
  const entries = (await contentsIn(end)).tables["audit"]?.rows;
  return [
    ...(different.length === 0 ? [] : [`the copy differs in ${different.join(", ")}`]),
    ...(entries === Number(contents.tables["audit"]?.rows) + 1 ? [] : ["the copy has not one audit entry"]),
  ];
}

function usageProblems(usage: Usage | undefined): string[] {
  return usage?.day.used === USED ? [] : ["the usage of the key is not copied"];
}

/** `usage` reads that of key 1 from the target. */
function attemptOf(
  argv: readonly string[],
  { to, contents, usage }: { to: TableStore; contents: Contents; usage: () => Promise<Usage | undefined> },
): Omit<Attempt, "remove"> {
  return {
    argv,
    checkAfterKill: () => checkCopy(to, contents),
    async checkAtEnd() {
      if (!(await to.exists())) return ["the copy is not visible after the end"];
      return [...(await checkCopy(to, contents)), ...usageProblems(await usage())];
    },
  };
}

interface Engines {
  /** A database of PostgreSQL that can create others. */
  readonly postgres: string;
  readonly valkey: string;
}

/** Each attempt has a database of its own in both. */
export function copyToCommand({ data, contents }: Fixture, { postgres, valkey }: Engines): KilledCommand {
  let databases = 0;
  return {
    name: "copy-to",
    async prepare() {
      const name = `killed_${++databases}`;
      await administer(postgres, `CREATE DATABASE ${name}`);
      const [url, limits] = [withPath(postgres, name), withPath(valkey, databases)];
      const to = postgresTables({ url, schema: "production" });
      const usage = () => usageInValkey(limits);
      const argv = ["copy", "--to", url, "--limits-url", limits, "--data", data];
      return {
        ...attemptOf(argv, { to, contents, usage }),
        remove: () => administer(postgres, `DROP DATABASE ${name} WITH (FORCE)`),
      };
    },
  };
}

function withPath(url: string, path: string | number): string {
  return new URL(`/${path}`, url).href;
}

async function administer(server: string, statement: string): Promise<void> {
  await using sql = new SQL(server, { max: 1 });
  await sql.unsafe(statement);
}

async function usageInValkey(url: string): Promise<Usage | undefined> {
  const valkey = await UsageCopy.open({ url, prefix: "petstore:production:" });
  const [found] = await valkey.read([1]);
  valkey.close();
  return found?.[1];
}

export async function copyFromCommand({ data }: Fixture, engines: Engines): Promise<KilledCommand> {
  await administer(engines.postgres, "CREATE DATABASE source");
  const [url, limits] = [withPath(engines.postgres, "source"), withPath(engines.valkey, 0)];
  await succeed("copy", "--to", url, "--limits-url", limits, "--data", data);
  const source = await contentsIn(postgresTables({ url, schema: "production" }));
  return {
    name: "copy-from",
    async prepare() {
      const target = temporaryFolder("killed-copy");
      const usage = async () => usageInFile(join(target, "production-limits.db"));
      const argv = ["copy", "--from", url, "--limits-url", limits, "--data", target];
      return {
        ...attemptOf(argv, { to: sqliteIn(target), contents: source, usage }),
        remove: async () => rmSync(target, { recursive: true }),
      };
    },
  };
}

function usageInFile(path: string): Usage | undefined {
  const usages = openUsageStore(path);
  const usage = usages.find({ kind: "key", id: 1 });
  usages.close();
  return usage;
}
