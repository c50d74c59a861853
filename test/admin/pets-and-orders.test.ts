import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cleanUpAfterAll } from "../cli/cli.ts";
import { type AdminService, startAdminService } from "./admin-service.ts";
import { findsLastPetAtOnce } from "./search-cases.ts";
import { withServiceValues } from "../pets.ts";

cleanUpAfterAll();

let service: AdminService;
beforeEach(async () => {
  service = await startAdminService();
  await createPet(`{"name":"Rex","categoryId":${LARGE},"status":"available"}`);
  await createPet('{"name":"Tom","categoryId":2}');
});
afterEach(() => service.stop());

const LARGE = 9_007_199_254_740_993n;
const createPet = (body: string) => service.call({ method: "POST", path: "/pets", body });
const placeOrder = (petId: number, key = service.key) =>
  service.call({ method: "POST", path: "/store/orders", body: { petId }, key });
const publicPage = async () => (await service.call({ path: "/pets" })).json;

describe("pets", () => {
  test("are listed and fetched with exact integers", async () => {
    const first = await service.ok("/api/pets/1");
    const rex = { id: 1, name: "Rex", categoryId: LARGE, status: "available" };
    expect<object>(first).toEqual(withServiceValues(rex, first));
    expect((await service.ok("/api/pets?limit=1"))["items"]).toEqual([first]);
    const second = await service.ok("/api/pets/2");
    expect<object>(second).toEqual(withServiceValues({ id: 2, name: "Tom", categoryId: 2 }, second));
  });

  test("are listed in pages, by status and by category", async () => {
    const { nextCursor } = await service.ok("/api/pets?limit=1");
    const second = await service.ok(`/api/pets?limit=1&cursor=${String(nextCursor)}`);
    expect(second).toMatchObject({ items: [{ id: 2 }], nextCursor: null });
    expect(await service.ok("/api/pets?status=available")).toMatchObject({ items: [{ id: 1 }] });
    expect(await service.ok("/api/pets?categoryId=2")).toMatchObject({ items: [{ id: 2 }] });
    expect(await service.ok(`/api/pets?categoryId=${LARGE}&status=sold`)).toMatchObject({ items: [] });
  });

  test("are found by a part of the name or by identifier, in pages", async () => {
    await createPet('{"name":"T-Rex","categoryId":2}');
    const find = (query: string) => service.ok(`/api/pets?${query}`);
    expect(await find("search=rEx")).toMatchObject({ items: [{ id: 1 }, { id: 3 }], nextCursor: null });
    expect(await find("search=2")).toMatchObject({ items: [{ id: 2, name: "Tom" }] });
    expect(await find("search=rex&status=available")).toMatchObject({ items: [{ id: 1 }] });
    expect(await find("search=rex&categoryId=2")).toMatchObject({ items: [{ id: 3 }] });
    const { items, nextCursor } = await find("search=rex&limit=1");
    expect(items).toMatchObject([{ id: 1 }]);
    expect(await find(`search=rex&cursor=${String(nextCursor)}`)).toMatchObject({ items: [{ id: 3 }] });
  });

  test("the pet whose identifier is searched comes first, once, with its status; names with the number follow", async () => {
    for (const name of ["no. 4", "44", "fourth, of 4", "4"])
      await createPet(JSON.stringify({ name, categoryId: 2 }));
    const find = async (query: string) => {
      const { items, nextCursor } = await service.ok(`/api/pets?search=4&${query}`);
      return [...(items as { id: number }[]).map(({ id }) => id), nextCursor];
    };
    expect(await find("")).toEqual([4, 3, 5, 6, null]);
    expect(await find("status=available")).toEqual([null]);
    const found: unknown[] = [];
    for (let cursor: unknown = "", pages = 0; cursor !== null; pages++) {
      const page = await find(`limit=1${cursor === "" ? "" : `&cursor=${String(cursor)}`}`);
      cursor = page.pop();
      found.push(...page);
      expect(pages).toBeLessThan(10);
    }
    expect(found).toEqual([4, 3, 5, 6]);
  });

  test("one is found by its identifier at once, among 100,000", () => findsLastPetAtOnce());

  test("one is added: clients see it at once, and it is in the audit trail", async () => {
    await publicPage();
    const added = await service.admin("POST /api/pets", { body: `{"name":"Mia","categoryId":${LARGE}}` });
    expect(added).toMatchObject({ status: 201, json: { id: 3, name: "Mia", categoryId: LARGE } });
    expect(await publicPage()).toMatchObject([{ id: 1 }, { id: 2 }, { id: 3, name: "Mia" }]);
    const { items } = await service.ok("/api/audit?target=pet:3");
    expect(items).toMatchObject([{ action: "pet.created", after: { name: "Mia" } }]);
  });

  test("a change by an operator shows at once on the public API, and is in the audit trail", async () => {
    await publicPage();
    await publicPage();
    const body = `{"name":"Max","categoryId":${LARGE + 2n},"status":null}`;
    const changed = await service.ok("PATCH /api/pets/1", { body });
    const max = { id: 1, name: "Max", categoryId: LARGE + 2n };
    expect<object>(changed).toEqual(withServiceValues(max, changed));
    expect(await publicPage()).toMatchObject([{ name: "Max" }, { name: "Tom" }]);
    const { items } = await service.ok("/api/audit?target=pet:1");
    const before = { name: "Rex", status: "available" };
    expect(items).toMatchObject([{ action: "pet.updated", before, after: { name: "Max", status: null } }]);
  });

  test("one without orders can be deleted, one with orders cannot", async () => {
    await placeOrder(1);
    const kept = await service.admin("DELETE /api/pets/1");
    expect(kept).toMatchObject({ status: 409, json: { code: "pet_has_orders" } });
    const deleted = await service.admin("DELETE /api/pets/2");
    expect({ status: deleted.status, text: deleted.text }).toEqual({ status: 204, text: "" });
    expect(await publicPage()).toMatchObject([{ id: 1 }]);
  });
});

describe("orders", () => {
  test("of all keys are listed, newest first, with filters", async () => {
    await placeOrder(1);
    const { secret, id } = await service.newKey({ name: "other" });
    await placeOrder(2, secret);
    expect(await service.ok("/api/orders")).toMatchObject({
      items: [
        { id: 2, petId: 2, petName: "Tom", keyId: id, keyName: "other", status: "placed" },
        { id: 1, petId: 1, petName: "Rex", keyId: 1, status: "placed" },
      ],
      nextCursor: null,
    });
    expect(await service.ok(`/api/orders?keyId=${id}`)).toMatchObject({ items: [{ id: 2 }] });
    expect(await service.ok("/api/orders?petId=1")).toMatchObject({ items: [{ id: 1 }] });
    expect(await service.ok("/api/orders?status=completed")).toMatchObject({ items: [] });
    const { nextCursor } = await service.ok("/api/orders?limit=1");
    const next = await service.ok(`/api/orders?cursor=${String(nextCursor)}`);
    expect(next).toMatchObject({ items: [{ id: 1 }] });
  });

  test("one of any key can be cancelled, and its pet is available again; a repeat changes nothing", async () => {
    await placeOrder(1);
    const cancel = () => service.admin("PATCH /api/orders/1", { body: { status: "cancelled" } });
    expect((await cancel()).json).toMatchObject({ id: 1, status: "cancelled", keyId: 1 });
    expect(await service.ok("/api/pets/1")).toMatchObject({ status: "available" });
    expect(await cancel()).toMatchObject({ status: 200, json: { id: 1, status: "cancelled" } });
    const complete = await service.admin("PATCH /api/orders/1", { body: { status: "completed" } });
    expect(complete).toMatchObject({ status: 409, json: { code: "order_closed" } });
    const { items } = await service.ok("/api/audit?target=order:1");
    expect(items).toMatchObject([{ action: "order.updated", after: { status: "cancelled" } }]);
  });
});
