/* Runs `npx bun trials/faults/promotions.ts`; its --help describes the options. */

import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DataDirectory } from "../../src/data-directory.ts";
import { openPostgres } from "../../src/store/postgres/open-postgres.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, runCommand } from "../harness/command-line.ts";
import { runPetstore } from "../harness/petstore.ts";
import { promote, startPostgres, startStandby } from "../harness/postgres.ts";
import type { Server } from "../harness/server.ts";
import { runTrials } from "../harness/trials.ts";

const HELP = `Usage: npx bun trials/faults/promotions.ts [OPTIONS]

Runs petstore backup again and again while pets are created one after the other on PostgreSQL with a synchronous standby,
and while standbys are lost, primaries are killed, standbys promoted, and old primaries come back, each at a random moment
of a backup. Every backup that exists must have every pet that was acknowledged before it began, and no other than the
primary at the end; a run that fails must exit with 1 and leave no file, and none may take longer than three minutes. Exits
with 1 otherwise.

  --rounds N    Faults (default: 20)
  --help        Show this
`;

const MAX_BACKUP_MS = 180_000;
/** The pets at first, so that a backup reads for a while. */
const PETS = 20_000;

interface Made {
  readonly acknowledgedBefore: number;
  readonly file: string | undefined;
}

/** The servers, the number of the last pet that was acknowledged, and the backups. */
class Deployment {
  readonly #data = temporaryDirectory("data");
  readonly backups = join(this.#data, "backups");
  readonly problems: string[] = [];
  readonly made: Made[] = [];
  failed = 0;
  /** How long a backup took that succeeded. */
  #usualMs = 0;
  longestMs = 0;
  acknowledged = 0;

  constructor(
    public primary: Server,
    public standby: Server,
  ) {
    mkdirSync(this.backups);
  }

  /** The one that may have been replaced comes first. */
  get url(): string {
    return this.primary.url.replace(/@([^/]+)/, `@$1,${new URL(this.standby.url).host}`);
  }

  /** Creates pets and makes backups while `fault` runs. */
  async during(fault: () => Promise<void>): Promise<void> {
    const { url } = this;
    let isOver = false;
    const latestTimeline = new DataDirectory({ path: this.#data, environment: "production" }).latestTimeline;
    const { clientStore, close } = await openPostgres(url, { schema: "production", latestTimeline });
    const isDone = () => isOver;
    if (this.acknowledged === 0) await this.#fill();
    const writing = this.#write(clientStore, isDone);
    const backingUp = this.#backUp(url, isDone);
    await Bun.sleep(Math.random() * this.#usualMs);
    await fault();
    isOver = true;
    await Promise.all([writing, backingUp]);
    await close();
  }

  /** Adds pets with the names that `#write` would use. */
  async #fill(): Promise<void> {
    await using sql = new SQL(this.primary.url, { max: 1 });
    await sql.unsafe(
      `INSERT INTO production.pets (name, category_id) SELECT n::text, 1 FROM generate_series(1, ${PETS}) AS n`,
    );
    this.acknowledged = PETS;
  }

  /** Repeats a create until it is acknowledged, so that the primary has the pets 1, 2, 3 and so on. */
  async #write(
    clientStore: Awaited<ReturnType<typeof openPostgres>>["clientStore"],
    isDone: () => boolean,
  ): Promise<void> {
    while (!isDone()) {
      const name = String(this.acknowledged + 1);
      const request = { keyId: 1, idempotencyKey: name, fingerprint: "f" };
      const created = await clientStore
        .createPet({ name, categoryId: 1n }, Date.now(), request)
        .catch(() => undefined);
      if (created !== undefined && !("code" in created)) this.acknowledged++;
      else await Bun.sleep(10);
    }
  }

  async #backUp(url: string, isDone: () => boolean): Promise<void> {
    do {
      const files = this.#files();
      const acknowledgedBefore = this.acknowledged;
      const startedAt = performance.now();
      const { code, err } = await runPetstore(
        "backup",
        this.backups,
        "--database-url",
        url,
        "--data",
        this.#data,
      );
      const ms = performance.now() - startedAt;
      const added = this.#files().filter((name) => !files.includes(name));
      const [file, ...others] = added.filter((name) => name.endsWith(".db"));
      this.made.push({ acknowledgedBefore, file });
      this.longestMs = Math.max(this.longestMs, ms);
      if (ms > MAX_BACKUP_MS) this.problems.push(`a backup took ${Math.round(ms)} ms`);
      if (code === 0 && others.length !== 0) this.problems.push(`a backup made ${others.length + 1} files`);
      if (code === 0) {
        this.#usualMs = ms;
        continue;
      }
      this.failed++;
      if (code !== 1 || added.length > 0)
        this.problems.push(`a failed backup: status ${code}, ${added.join(", ")}: ${err}`);
      await Bun.sleep(100);
    } while (!isDone());
  }

  /** Waits for a backup that begins from now on. The one that is running is at most one of the next two. */
  async nextBackup(): Promise<void> {
    const enough = this.made.length + 2;
    while (this.made.length < enough) await Bun.sleep(20);
  }

  #files(): string[] {
    return readdirSync(this.backups).filter((name) => name !== ".production.lock");
  }

  async judge(): Promise<void> {
    const { operatorPetStore, close } = await openPostgres(this.primary.url, { schema: "production" });
    const { items } = await operatorPetStore.listPets({ limit: this.acknowledged + 10 });
    await close();
    const atTheEnd = items.map(({ id, name }) => `${id} ${name}`);
    if (atTheEnd.length < this.acknowledged) this.problems.push("the primary has lost pets");
    for (const { file, acknowledgedBefore } of this.made) {
      if (file === undefined) continue;
      using database = new Database(join(this.backups, file), { readonly: true });
      const pets = database
        .query<{ id: number; name: string }, []>("SELECT id, name FROM pets ORDER BY id")
        .all();
      const names = pets.map(({ id, name }) => `${id} ${name}`);
      if (pets.length < acknowledgedBefore)
        this.problems.push(`${file} lacks ${acknowledgedBefore - pets.length} acknowledged pets`);
      if (names.some((name, i) => name !== atTheEnd[i])) this.problems.push(`${file} has other pets`);
    }
  }
}

async function loseStandby(deployment: Deployment): Promise<void> {
  const { standby } = deployment;
  await standby.kill();
  await deployment.nextBackup();
  await standby.restart();
}

/** The standby takes over. The old primary comes back, if it was killed, and runs for a while beside the new one. */
async function replacePrimary(deployment: Deployment, isKilled: boolean): Promise<void> {
  const { primary, standby } = deployment;
  if (isKilled) await primary.kill();
  await promote(standby);
  await deployment.nextBackup();
  if (isKilled) await primary.restart();
  await deployment.nextBackup();
}

async function run(rounds: number) {
  const primary = await startPostgres();
  const deployment = new Deployment(primary, await startStandby(primary));
  for (let round = 0; round < rounds; round++) {
    if (round % 3 === 0) await deployment.during(() => loseStandby(deployment));
    else {
      await deployment.during(() => replacePrimary(deployment, round % 3 === 1));
      await deployment.primary.discard();
      deployment.primary = deployment.standby;
      deployment.standby = await startStandby(deployment.primary);
    }
  }
  await deployment.judge();
  const { problems, made, failed, longestMs, acknowledged } = deployment;
  await Promise.all([deployment.primary.discard(), deployment.standby.discard()]);
  const note = `as promised: ${made.length} runs in ${rounds} faults, ${failed} failed; the longest took ${Math.round(longestMs)} ms; ${acknowledged} pets`;
  return { problems, note };
}

await runCommand({
  name: "faults/promotions",
  help: HELP,
  flags: { rounds: integer(20, 1_000) },
  maxMinutes: 30,
  main: ({ rounds }) =>
    runTrials({ trials: [{ title: "Backups while primaries are replaced" }], run: () => run(rounds) }),
});
