import { beforeEach, expect, test } from "bun:test";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";
import { createKey, withStores } from "./keys.ts";

cleanUpAfterAll();

let cli: InProcessCli;
/** Pets 1 to 3, and order 1 of key 1 for pet 2. */
beforeEach(async () => {
  cli = new InProcessCli();
  await createKey(cli);
  await withStores(cli, async ({ clientStore }) => {
    const at = cli.clock.now();
    await clientStore.createPet({ name: "Rex", categoryId: 9_007_199_254_740_993n }, at);
    await clientStore.createPet({ name: "日本\n犬", categoryId: 7n, status: "available" }, at);
    await clientStore.createPet({ name: "x".repeat(100), categoryId: -1n, status: "sold" }, at);
    await clientStore.placeOrder({ keyId: 1, petId: 2n }, at);
  });
});

test("pets list prints an aligned table with exact categories and short names", async () => {
  expect(await cli.out("pets list")).toBe(
    `ID  NAME                                                          CATEGORY          STATUS
1   Rex                                                           9007199254740993  -
2   日本\\u{a}犬                                                   7                 pending
3   ${"x".repeat(59)}…  -1                sold
`,
  );
  expect(await cli.out("pets list --status sold --json")).toBe(
    `[
  {
    "id": 3,
    "name": "${"x".repeat(100)}",
    "categoryId": -1,
    "status": "sold"
  }
]
`,
  );
});

test("pets list --category prints the pets of a category", async () => {
  expect(await cli.out("pets list --category 9007199254740993")).toMatch(/^ID .*\n1 +Rex .*\n$/);
  expect(await cli.out("pets list --category -1 --status pending")).toStartWith("There are no such pets ");
});

test("pets list and orders list say how to continue", async () => {
  const first = await cli.out("pets list --limit 2");
  expect(first).toEndWith("\nwarning: more pets follow; add --after 2\n");
  expect(await cli.out("pets list --limit 2 --after 2")).toMatch(/^3 +x+… +-1 +sold$/m);
  expect(await cli.out("pets list --after 3")).toStartWith("There are no such pets in production ");
  await withStores(cli, ({ clientStore }) =>
    clientStore.placeOrder({ keyId: 2, petId: 1n }, cli.clock.now()),
  );
  expect(await cli.out("orders list --limit 1")).toBe(
    `ID  PET  KEY  STATUS  PLACED                    CLOSED
2   1    2    placed  2026-11-15T12:00:00.000Z  -
warning: more orders follow; add --before 2
`,
  );
  expect(await cli.out("orders list --before 2")).toMatch(/^1 +2 +1 +placed /m);
  expect(await cli.out("orders list --pet 3")).toStartWith("There are no such orders in production ");
});

test("pets show prints the latest orders", async () => {
  expect(await cli.out("pets show 1")).toBe(
    "Pet       1\nName      Rex\nCategory  9007199254740993\nStatus    none\n\nIt has no orders.\n",
  );
  expect(await cli.out("pets show 2")).toBe(`Pet       2
Name      日本\\u{a}犬
Category  7
Status    pending

ID  PET  KEY  STATUS  PLACED                    CLOSED
1   2    1    placed  2026-11-15T12:00:00.000Z  -
`);
  expect(await cli.out("pets show 1 --json")).toBe(
    '{\n  "id": 1,\n  "name": "Rex",\n  "categoryId": 9007199254740993,\n  "status": null,\n  "orders": []\n}\n',
  );
});

test("orders show prints the key of the order, and when it was closed", async () => {
  expect(await cli.out("orders show 1")).toEndWith("\n1   2    1    placed  2026-11-15T12:00:00.000Z  -\n");
  expect(await cli.json("orders show 1")).toEqual({
    id: 1,
    petId: 2,
    status: "placed",
    createdAt: "2026-11-15T12:00:00.000Z",
    keyId: 1,
    closedAt: null,
    petName: "日本\n犬",
    keyName: "app",
  });
  await cli.run("orders update 1 completed");
  expect(await cli.out("orders show 1")).toMatch(/completed +(\S+) +\1\n$/);
});

test("pets update changes the given fields and prints the pet", async () => {
  const { code, out } = await cli.run(["pets", "update", "1", "--name", "Rex II", "--status", "available"]);
  expect(code).toBe(0);
  expect(out).toBe("ID  NAME    CATEGORY          STATUS\n1   Rex II  9007199254740993  available\n");
  expect(await cli.json("pets update 1 --category 5 --clear status")).toEqual({
    id: 1,
    name: "Rex II",
    categoryId: 5,
    status: null,
  });
});

test("pets delete names the pet that is gone, and asks nothing about one that does not exist; with a placed order it stays, and keeps its status", async () => {
  expect(await cli.run("pets delete 1")).toEqual({ code: 0, out: "Pet 1 (Rex) is deleted.\n", err: "" });
  expect(await cli.err("pets delete 1")).toBe(
    `Pet 1 does not exist. See petstore pets list; this is production (data: ${cli.dataDir}).`,
  );
  expect(cli.questions).toHaveLength(1);
  expect(await cli.err("pets update 2 --status sold")).toBe(
    "Pet 2 has the placed order 1 and keeps its status. Complete or cancel the order first.",
  );
  expect(await cli.err("pets delete 2")).toBe(
    "Pet 2 has orders and cannot be deleted. The latest is order 1.",
  );
});

test("orders update says what became of the pet", async () => {
  expect(await cli.out("orders update 1 cancelled")).toBe("Order 1 is cancelled. Pet 2 is available.\n");
  expect(await cli.json("pets show 2")).toMatchObject({ status: "available" });
  expect(await cli.err("orders update 1 completed")).toBe(
    "Order 1 is already cancelled. Only placed orders can be updated.",
  );
});
