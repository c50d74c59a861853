import { expect, test } from "bun:test";
import { Overloaded } from "../../src/api/errors.ts";
import type { Credential } from "../../src/domain/api-keys.ts";
import { CredentialLookUps } from "../../src/store/postgres/credential-look-ups.ts";

const credential = (id: number): Credential => ({
  key: { id, name: "shop", labels: [], plan: "free", access: "write", createdAt: 0 },
});

/** Look-ups whose queries the test ends. Hashes are numbers; those below 1,000 are the hashes of keys. */
class TestLookUps extends CredentialLookUps {
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

/** What became of each look-up: the identifier of its key, or the message of an error. */
const outcomes = (found: readonly Promise<Credential | undefined>[]) =>
  Promise.all(
    found.map((each) =>
      each.then(
        (result) => result?.key.id,
        (error: unknown) => (error instanceof Error ? error.message : ""),
      ),
    ),
  );

test("a look-up is sent at once; those that arrive while it runs share the next query", async () => {
  const lookUps = new TestLookUps();
  const found = ["1", "2", "3000", "4"].map((hash) => lookUps.find(hash));
  expect(lookUps.queries).toEqual([["1"]]);
  await lookUps.endQuery();
  expect(lookUps.queries).toEqual([["1"], ["2", "3000", "4"]]);
  await lookUps.endQuery();
  expect(await outcomes(found)).toEqual([1, 2, undefined, 4]);
  const later = lookUps.find("5");
  expect(lookUps.queries).toHaveLength(3);
  await lookUps.endQuery();
  expect(await outcomes([later])).toEqual([5]);
});

test("a query has at most 64 hashes", async () => {
  const lookUps = new TestLookUps();
  const found = Array.from({ length: 100 }, (_, id) => lookUps.find(`${id}`));
  for (let query = 0; query < 3; query++) await lookUps.endQuery();
  expect(lookUps.queries.map(({ length }) => length)).toEqual([1, 64, 35]);
  expect(await outcomes(found)).toEqual(Array.from({ length: 100 }, (_, id) => id));
});

test("an error of a query is that of its look-ups, and of no others", async () => {
  const lookUps = new TestLookUps();
  const found = ["1", "2", "3"].map((hash) => lookUps.find(hash));
  const results = outcomes(found);
  await lookUps.endQuery();
  await lookUps.endQuery(new Error("the connection was lost"));
  expect(await results).toEqual([1, "the connection was lost", "the connection was lost"]);
  const later = lookUps.find("4");
  await lookUps.endQuery();
  expect(await outcomes([later])).toEqual([4]);
});

test("look-ups beyond the queue are rejected at once, and the others are not", async () => {
  const lookUps = new TestLookUps(2);
  const found = ["1", "2", "3"].map((hash) => lookUps.find(hash));
  const rejection: unknown = await lookUps.find("4").catch((error: unknown) => error);
  expect(rejection).toBeInstanceOf(Overloaded);
  await lookUps.endQuery();
  await lookUps.endQuery();
  expect(await outcomes(found)).toEqual([1, 2, 3]);
});
