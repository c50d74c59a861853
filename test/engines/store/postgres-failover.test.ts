import { afterAll, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import type { StateChange } from "../../../src/domain/ports/stores.ts";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { postgresTables } from "../../../src/store/postgres/table-store.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { addPet, AT, resultOf, rex } from "../../conformance/store-fixture.ts";
import { until, untilFound } from "../../timing.ts";

const first = await startPostgres();
const second = await startStandby(first);
afterAll(() => Promise.all([first.stop(), second.stop()]));

/** The URL of both servers, as libpq writes it. The standby comes first. */
const BOTH = second.url.replace(/@([^/]+)/, `@$1,${new URL(first.url).host}`);

test("a standby alone is rejected: reads would be old, and writes would fail", async () => {
  const { host } = new URL(second.url);
  await expect(openPostgres(second.url)).rejects.toThrow(
    `cannot open the database ${host}/postgres: the server is a standby, so name the primary in --database-url, or promote it`,
  );
});

test("the server that accepts writes is used, also by commands", async () => {
  const { clientStore, petJson, close } = await openPostgres(BOTH);
  const id = await addPet(clientStore);
  expect((await petJson.get(id))?.json).toStartWith(`{"id":${id},`);
  await close();
  expect(await postgresTables({ url: BOTH, schema: "public" }).exists()).toBe(true);
});

const CLIENTS = 8;

/** Repeats a create with its Idempotency-Key until it succeeds, as the client library does. */
async function create({ clientStore }: PostgresStores, name: string): Promise<bigint> {
  const request = { keyId: 1, idempotencyKey: name, fingerprint: "f" };
  return untilFound(async () => {
    try {
      const result = await clientStore.createPet({ ...rex, name }, AT, request);
      // Another attempt at the same request may still be in progress.
      return "code" in result ? undefined : resultOf(result).id;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return undefined;
    }
  }, 10_000);
}

test("the primary is killed and the standby promoted: no acknowledged write is lost or doubled, no read goes back, and writes succeed within 5 s", async () => {
  const changes: StateChange["state"][] = [];
  const stores = await openPostgres(BOTH, { onStateChange: ({ state }) => changes.push(state) });
  const created = new Map<string, bigint>();
  const over = new AbortController();
  let highest = 0n;
  const writing = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let n = 0; !over.signal.aborted; n++) {
      const name = `${client} ${n}`;
      created.set(name, await create(stores, name));
    }
  });
  const reading = Array.from({ length: CLIENTS }, async () => {
    while (!over.signal.aborted) {
      const before = highest;
      const page = await stores.petJson.list({ after: before - 1n, limit: 100 }).catch(() => undefined);
      if (page === undefined) await Bun.sleep(1);
      else {
        expect(page.last ?? 0n).toBeGreaterThanOrEqual(before);
        if ((page.last ?? 0n) > highest) highest = page.last ?? 0n;
      }
    }
  });
  const reached = async (count: number) => {
    await until(() => created.size >= count, 10_000);
  };
  await reached(200);
  await first.kill();
  const acknowledged = new Map(created);
  await promote(second);
  await until(() => created.size >= acknowledged.size + CLIENTS + 1, 5_000);
  await reached(acknowledged.size + 200);

  // The old primary comes back, and nobody has told it that it is none.
  await first.restart();
  await reached(created.size + 200);
  over.abort();
  await Promise.all([...writing, ...reading]);

  const { items } = await stores.operatorPetStore.listPets({ limit: 100_000 });
  const ids = new Map(items.map(({ name, id }) => [name, id]));
  expect(items.filter(({ name }) => name !== "Rex")).toHaveLength(created.size);
  for (const [name, id] of created) expect(ids.get(name)).toBe(id);
  expect(changes[0]).toBe("down");
  expect(changes.at(-1)).toBe("up");

  // It is not used again when the new primary fails, either.
  await second.kill();
  await expect(addPet(stores.clientStore)).rejects.toBeInstanceOf(Unavailable);
  await Bun.sleep(500);
  await expect(addPet(stores.clientStore)).rejects.toBeInstanceOf(Unavailable);
  await second.restart();
  await create(stores, "at last");
  await stores.close();
}, 60_000);

test("an outage has several causes: each is reported once, with what to do about standbys", async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary, { isSynchronous: false });
  const hosts = primary.url.replace(/@([^/]+)/, `@$1,${new URL(standby.url).host}`);
  const changes: StateChange[] = [];
  const stores = await openPostgres(hosts, {
    onStateChange: (change) => void changes.push(change),
    timeoutMs: 500,
  });
  const causes = () => changes.flatMap((change) => (change.state === "down" ? [String(change.cause)] : []));
  const read = () =>
    stores.petJson.list({ limit: 1 }).then(
      () => {},
      () => {},
    );
  primary.freeze();
  await read();
  await until(() => causes().length >= 1, 5_000);
  await primary.kill();
  const promote = `start the primary, or promote ${new URL(standby.url).host}/postgres`;
  await until(() => causes().some((cause) => cause.endsWith(promote)), 5_000);
  await Bun.sleep(1_000);
  expect(new Set(causes()).size).toBe(causes().length);
  expect(causes().length).toBeLessThanOrEqual(5);
  await primary.restart();
  await until(() => changes.at(-1)?.state === "up", 10_000);
  await stores.close();
  await Promise.all([primary.stop(), standby.stop()]);
}, 60_000);
