import { expect, test } from "bun:test";
import { checkSqliteHistory } from "../../../trials/faults/history.ts";

test("a history of requests to a server on SQLite that is killed: nothing acknowledged is lost, reads never go back", async () => {
  const { kills, kinds, problems } = await checkSqliteHistory({ requests: 1_500, seed: 1 });
  expect(problems).toEqual([]);
  expect(kills).toBeGreaterThan(0);
  const expected = ["304", "conditional", "create", "get", "list", "order", "update"];
  expect(Object.keys(kinds).toSorted()).toEqual(expected);
}, 120_000);
