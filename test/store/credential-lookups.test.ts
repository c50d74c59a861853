import { expect, test } from "bun:test";
import { Overloaded } from "../../src/api/errors.ts";
import type { Credential } from "../../src/domain/api-keys.ts";
import { CredentialLookups } from "../../src/store/postgres/api-keys.ts";

const credential = (id: number): Credential => ({
  key: { id, name: "shop", labels: [], plan: "free", access: "write", createdAt: 0 },
});

/** Lookups whose queries the test ends. Hashes are numbers; those below 1,000 are the hashes of keys. */
class TestLookups extends CredentialLookups {
  readonly queries: (readonly string[])[];
  readonly #running: PromiseWithResolvers<ReadonlyMap<string, Credential>>[];

  constructor(maxQueued = 100) {
    const queries: (readonly string[])[] = [];
    const running: PromiseWithResolvers<ReadonlyMap<string, Credential>>[] = [];
    const find = (hashes: readonly string[]) => {
      queries.push(hashes);
      const query = Promise.withResolvers<ReadonlyMap<string, Credential>>();
      running.push(query);
      return query.promise;
    };
    super({ find, maxQueued });
    this.queries = queries;
    this.#running = running;
  }

  /** Ends the query that is running, and waits until the next one has begun. */
  async endQuery(error?: Error): Promise<void> {
    const ids = this.queries.at(-1)?.map(Number) ?? [];
    const query = this.#running.shift();
    if (error) query?.reject(error);
    else query?.resolve(new Map(ids.filter((id) => id < 1_000).map((id) => [`${id}`, credential(id)])));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What became of each lookup: the identifier of its key, or the message of an error. */
const outcomes = (found: readonly Promise<Credential | undefined>[]) =>
  Promise.all(
    found.map((each) =>
      each.then(
        (result) => result?.key.id,
        (error: unknown) => (error instanceof Error ? error.message : ""),
      ),
    ),
  );

test("a lookup is sent at once; those that arrive while it runs share the next query", async () => {
  const lookups = new TestLookups();
  const found = ["1", "2", "3000", "4"].map((hash) => lookups.find(hash));
  expect(lookups.queries).toEqual([["1"]]);
  await lookups.endQuery();
  expect(lookups.queries).toEqual([["1"], ["2", "3000", "4"]]);
  await lookups.endQuery();
  expect(await outcomes(found)).toEqual([1, 2, undefined, 4]);
  const later = lookups.find("5");
  expect(lookups.queries).toHaveLength(3);
  await lookups.endQuery();
  expect(await outcomes([later])).toEqual([5]);
});

test("a query has at most 64 hashes", async () => {
  const lookups = new TestLookups();
  const found = Array.from({ length: 100 }, (_, id) => lookups.find(`${id}`));
  for (let query = 0; query < 3; query++) await lookups.endQuery();
  expect(lookups.queries.map(({ length }) => length)).toEqual([1, 64, 35]);
  expect(await outcomes(found)).toEqual(Array.from({ length: 100 }, (_, id) => id));
});

test("an error of a query is that of its lookups, and of no others", async () => {
  const lookups = new TestLookups();
  const found = ["1", "2", "3"].map((hash) => lookups.find(hash));
  const results = outcomes(found);
  await lookups.endQuery();
  await lookups.endQuery(new Error("the connection was lost"));
  expect(await results).toEqual([1, "the connection was lost", "the connection was lost"]);
  const later = lookups.find("4");
  await lookups.endQuery();
  expect(await outcomes([later])).toEqual([4]);
});

test("lookups beyond the queue are rejected at once, and the others are not", async () => {
  const lookups = new TestLookups(2);
  const found = ["1", "2", "3"].map((hash) => lookups.find(hash));
  const rejection: unknown = await lookups.find("4").catch((error: unknown) => error);
  expect(rejection).toBeInstanceOf(Overloaded);
  await lookups.endQuery();
  await lookups.endQuery();
  expect(await outcomes(found)).toEqual([1, 2, 3]);
});
