import { expect } from "bun:test";
import type { AuditQuery, NewAuditEntry } from "../../src/domain/audit.ts";
import type { AuditStore } from "../../src/domain/ports/audit.ts";
import { AT, type TestCase } from "./store-fixture.ts";

const signedIn: NewAuditEntry = { at: AT, actor: { kind: "console" }, action: "admin.signed-in" };
const INT64_MAX = 2n ** 63n - 1n;

/** Six entries, two of them of the same millisecond. The first was recorded by a clock that was ahead. */
const ENTRIES: readonly NewAuditEntry[] = [
  { at: AT + 9, actor: { kind: "server" }, action: "key.banned", target: { kind: "key", id: 7n } },
  { at: AT, actor: { kind: "console", operator: "ann" }, action: "admin.signed-in" },
  { at: AT + 1, actor: { kind: "console" }, action: "key.updated", target: { kind: "key", id: 7n } },
  { at: AT + 1, actor: { kind: "admin API" }, action: "key.updated", target: { kind: "key", id: 8n } },
  {
    at: AT + 2,
    actor: { kind: "console", operator: "ann" },
    action: "pet.updated",
    target: { kind: "pet", id: 7n },
  },
  { at: AT + 3, actor: { kind: "command line" }, action: "key.updated", target: { kind: "key", id: 7n } },
];

/** What every AuditStore does, on whatever database. */
export function auditStoreConformance(test: TestCase): void {
  const idsOf = async (audit: AuditStore, query: Partial<AuditQuery> = {}) =>
    (await audit.listAudit({ limit: 100, ...query })).items.map(({ id }) => Number(id));

  test("recordAudit: an entry is listed as it was given, by every process", async ({ audit, another }) => {
    expect(await audit.listAudit({ limit: 1 })).toEqual({ items: [], hasMore: false });
    const full: NewAuditEntry = {
      at: AT + 1,
      actor: { kind: "admin API", name: "192.0.2.1", operator: "ann" },
      action: "pet.updated",
      target: { kind: "pet", id: INT64_MAX },
      before: {
        name: 'Rex "the\\dog" 🐈',
        categoryId: "9223372036854775807",
        status: null,
        labels: ["a"],
      },
      after: { name: "", status: "sold", isOpen: true, count: 1.5 },
    };
    await audit.recordAudit(signedIn);
    await audit.recordAudit(full);
    const items = [
      { id: 2n, ...full },
      { id: 1n, ...signedIn },
    ];
    expect(await audit.listAudit({ limit: 9 })).toStrictEqual({ items, hasMore: false });
    expect(await (await another()).audit.listAudit({ limit: 9 })).toStrictEqual({ items, hasMore: false });
  });

  test("recordAuditUnless: an entry is recorded once, by whatever process, unless the filters find it", async (opened) => {
    const { audit, another } = opened;
    const { audit: other } = await another();
    const target = { kind: "key", id: 7n } as const;
    const entry = { at: AT, actor: { kind: "server" }, action: "key.banned", target } as const;
    const filters = { action: "key.banned", target, since: AT, until: AT + 1 } as const;
    const record = (each: AuditStore) => each.recordAuditUnless(filters, entry);
    expect((await Promise.all([audit, other, audit, other].map(record))).toSorted()).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect((await audit.listAudit({ limit: 9 })).items).toEqual([{ id: 1n, ...entry }]);
    const others = [
      { ...filters, since: AT + 1, until: AT + 2 },
      { ...filters, action: "key.unbanned" },
      { ...filters, target: { ...target, id: 8n } },
    ] as const;
    for (const each of others) expect(await audit.recordAuditUnless(each, entry)).toBe(true);
    expect(await idsOf(audit)).toHaveLength(4);
  });

  test("listAudit: newest first by time and then by identifier, with each filter and with several", async (opened) => {
    const { audit } = opened;
    for (const entry of ENTRIES) await audit.recordAudit(entry);
    const key = { kind: "key", id: 7n } as const;
    const console = { action: "key.updated", actor: "console", target: key } as const;
    const expected: [Partial<AuditQuery>, number[]][] = [
      [{}, [1, 6, 5, 4, 3, 2]],
      [{ action: "key.updated" }, [6, 4, 3]],
      [{ actor: "console" }, [5, 3, 2]],
      [{ operator: "ann" }, [5, 2]],
      [{ operator: "ann", actor: "console", action: "admin.signed-in" }, [2]],
      [{ operator: "bob" }, []],
      [{ target: key }, [1, 6, 3]],
      [{ target: { kind: "pet", id: 7n } }, [5]],
      [{ target: { kind: "order", id: 7n } }, []],
      [{ since: AT + 2 }, [1, 6, 5]],
      [{ until: AT + 2 }, [4, 3, 2]],
      [{ since: AT + 1, until: AT + 2 }, [4, 3]],
      [{ action: "key.updated", target: key }, [6, 3]],
      [{ ...console, since: AT, until: AT + 2 }, [3]],
    ];
    const found: typeof expected = [];
    for (const [query] of expected) found.push([query, await idsOf(audit, query)]);
    expect(found).toEqual(expected);
  });

  test("listAudit after an entry: in the order of identifiers, whatever the clocks said, with filters", async ({
    audit,
  }) => {
    for (const entry of ENTRIES) await audit.recordAudit(entry);
    expect(await idsOf(audit, { after: 0n })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await idsOf(audit, { after: 4n })).toEqual([5, 6]);
    expect(await idsOf(audit, { after: 6n })).toEqual([]);
    expect(await idsOf(audit, { after: 0n, action: "key.updated" })).toEqual([3, 4, 6]);
    const page = await audit.listAudit({ after: 1n, limit: 2 });
    expect([page.items.map(({ id }) => id), page.hasMore]).toEqual([[2n, 3n], true]);
  });

  test("listAudit: pages follow each other without gaps, with filters and without", async ({ audit }) => {
    for (const entry of ENTRIES) await audit.recordAudit(entry);
    for (const filter of [{}, { action: "key.updated" }, { since: AT + 1 }] as const) {
      const all = await idsOf(audit, filter);
      const paged: number[] = [];
      let before: bigint | undefined;
      for (;;) {
        const query = { ...filter, limit: 2, ...(before !== undefined && { before }) };
        const { items, hasMore } = await audit.listAudit(query);
        paged.push(...items.map(({ id }) => Number(id)));
        before = items.at(-1)?.id;
        if (!hasMore) break;
        expect(items).toHaveLength(2);
      }
      expect(paged).toEqual(all);
    }
    expect(await idsOf(audit, { before: 99n })).toEqual([]);
  });

  test("deleteAudit: entries before a time, some with each call, and of two processes each other ones", async (opened) => {
    const { audit, another } = opened;
    const { audit: other } = await another();
    expect(await audit.deleteAudit(AT)).toBe(false);
    for (let n = 0; n < 220; n++) {
      await audit.recordAudit({ ...signedIn, at: AT + (n < 210 ? n % 5 : 5) });
    }
    expect(await audit.deleteAudit(AT + 5)).toBe(true);
    expect(await idsOf(audit, { limit: 220 })).toHaveLength(120);
    expect((await idsOf(audit, { since: AT + 5 })).length).toBe(10);
    while ((await Promise.all([audit, other].map((each) => each.deleteAudit(AT + 5)))).includes(true));
    while (await audit.deleteAudit(AT + 5));
    expect(await idsOf(other)).toHaveLength(10);
    expect(await idsOf(other, { before: 1n })).toEqual([]);
  });
}
