import { expect } from "bun:test";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import { Invalid } from "../../src/api/schema.ts";
import type { Pet } from "../../src/domain/pets-and-orders.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import type { BatchResult, ConflictRule, ImportedPet, PetBatch } from "../../src/archive/imported-pets.ts";
import {
  ConcurrentImport,
  type ImportCommit,
  type ImportProgress,
  ImportStore,
  NO_PROGRESS,
} from "../../src/archive/import-store.ts";
import type { OperatorPetStore } from "../../src/domain/ports/pets-and-orders.ts";
import { rowsOf, type Statements } from "../../src/store/sql/steps.ts";
import type { SharedTables } from "../../src/store/sql/table-store.ts";
import { addPet, AT, DAY_MS, type OpenedStores, resultOf, type TestOn } from "./store-fixture.ts";

type TestCase = TestOn<OpenedStores & { readonly imports: ImportStore }>;

const FILE = { fingerprint: "pets:1", source: "/pets.csv", options: "--keep-ids", startedAt: AT };

const entry: NewAuditEntry = {
  actor: { kind: "command line", name: "ann" },
  at: AT + 5,
  action: "data.imported",
  after: { kind: "pets" },
};

const after = (progress: ImportProgress, rows: number) => (result: BatchResult) => ({
  rows: progress.rows + rows,
  added: progress.added + result.added,
  replaced: progress.replaced + result.replaced,
  skipped: progress.skipped + result.skipped,
  rejected: progress.rejected + result.rejected.size,
  rejectsBytes: progress.rejectsBytes + 7,
});

/** A batch of the file, after `from`. */
function batchOf(
  rows: readonly ImportedPet[],
  { from = NO_PROGRESS, onConflict = "reject" as ConflictRule } = {},
): [PetBatch, ImportCommit] {
  const progressAfter = after(from, rows.length);
  return [
    { rows, onConflict },
    { fingerprint: FILE.fingerprint, rowsBefore: from.rows, progressAfter },
  ];
}

const allPets = async (operatorPetStore: OperatorPetStore): Promise<readonly Pet[]> =>
  (await operatorPetStore.listPets({ limit: 100 })).items;
const rex = (id: bigint): ImportedPet => ({ id, name: "Rex", categoryId: 1n });

/** What every ImportStore does, on whatever database. */
export function importStoreConformance(test: TestCase): void {
  test("only the transaction that completes an import waits for the disk, and all before it with it", async (opened) => {
    const { tables, selectWaits = expect.unreachable() } = opened;
    await using shared = await tables.share();
    const waits: number[] = [];
    const recording: SharedTables = {
      dialect: shared.dialect,
      rowsPerTransaction: shared.rowsPerTransaction,
      onWrite: (table, rows) => shared.onWrite(table, rows),
      makeDurable: () => shared.makeDurable(),
      write: <T>(statements: Statements<T>) =>
        shared.write(function* () {
          const [row] = yield* rowsOf<{ waits: number | bigint }>(selectWaits);
          waits.push(Number(row?.waits));
          return yield* statements();
        }),
      [Symbol.asyncDispose]: async () => {},
    };
    const imports = new ImportStore(recording);
    await imports.beginImport(FILE);
    await imports.importPets(...batchOf([rex(1n)]));
    await imports.finishImport(FILE.fingerprint, entry);
    expect(waits).toEqual([0, 0, 1]);
  });

  recordCases(test);
  petCases(test);
}

function recordCases(test: TestCase): void {
  test("progress is stored with each batch, and the finish with an audit entry", async (opened) => {
    const { imports, audit } = opened;
    const find = () => imports.findImport(FILE.fingerprint);
    expect(await find()).toBeUndefined();
    await imports.beginImport(FILE);
    expect(await find()).toEqual({ ...FILE, progress: NO_PROGRESS });
    await imports.importPets(...batchOf([rex(1n), rex(1n), rex(2n)]));
    const progress = { rows: 3, added: 2, replaced: 0, skipped: 0, rejected: 1, rejectsBytes: 7 };
    expect(await imports.findUnfinishedImport(FILE.source)).toEqual({ ...FILE, progress });
    await imports.finishImport(FILE.fingerprint, entry);
    expect(await find()).toEqual({ ...FILE, finishedAt: AT + 5, progress });
    expect(await imports.findUnfinishedImport(FILE.source)).toBeUndefined();
    const late = imports.importPets(...batchOf([rex(3n)], { from: progress }));
    await expect(late).rejects.toBeInstanceOf(ConcurrentImport);
    expect((await audit.listAudit({ limit: 10 })).items).toMatchObject([entry]);
    await imports.beginImport({ ...FILE, startedAt: AT + 9 });
    expect(await find()).toEqual({ ...FILE, startedAt: AT + 9, progress: NO_PROGRESS });
  });

  test("the record of an import is deleted by one that begins 400 days after its end, if another has finished since", async (opened) => {
    const { imports } = opened;
    const file = (fingerprint: string, startedAt: number) => ({ ...FILE, fingerprint, startedAt });
    const isKept = async (fingerprint: string) => (await imports.findImport(fingerprint)) !== undefined;
    await imports.beginImport(file("old", AT));
    await imports.finishImport("old", { ...entry, at: AT });
    await imports.beginImport(file("unfinished", AT));
    // A clock that is ahead.
    await imports.beginImport(file("next", AT + 4_000 * DAY_MS));
    expect(await isKept("old")).toBe(true);
    await imports.finishImport("next", { ...entry, at: AT + 401 * DAY_MS });
    await imports.beginImport(file("early", AT + 400 * DAY_MS));
    expect(await isKept("old")).toBe(true);
    await imports.beginImport(file("late", AT + 400 * DAY_MS + 1));
    expect(await isKept("old")).toBe(false);
    expect([await isKept("unfinished"), await isKept("next")]).toEqual([true, true]);
  });

  test("of the unfinished imports of a path, the one that began last is found", async ({ imports }) => {
    for (const [fingerprint, startedAt] of [
      ["first", AT],
      ["last", AT + 9],
      ["second", AT + 5],
    ] as const)
      await imports.beginImport({ ...FILE, fingerprint, startedAt });
    expect(await imports.findUnfinishedImport(FILE.source)).toMatchObject({ fingerprint: "last" });
  });

  test("a process that begins an import while another one has stored rows of it does not reset them", async (opened) => {
    const { imports } = opened;
    for (let begun = 0; begun < 2; begun++) await imports.beginImport(FILE);
    await imports.importPets(...batchOf([rex(1n)]));
    await expect(imports.beginImport(FILE)).rejects.toBeInstanceOf(ConcurrentImport);
    expect((await imports.findImport(FILE.fingerprint))?.progress.rows).toBe(1);
    await imports.beginImport({ ...FILE, options: "" });
    expect((await imports.findImport(FILE.fingerprint))?.progress).toEqual(NO_PROGRESS);
  });

  test("of two processes that import the same file, one stores a batch", async ({
    imports,
    operatorPetStore,
  }) => {
    await imports.beginImport(FILE);
    await imports.importPets(...batchOf([{ name: "Rex", categoryId: 1n }]));
    const second = imports.importPets(...batchOf([{ name: "Mia", categoryId: 1n }]));
    expect(await second.catch((error: unknown) => error)).toBeInstanceOf(ConcurrentImport);
    expect((await allPets(operatorPetStore)).map(({ name }) => name)).toEqual(["Rex"]);
  });
}

function petCases(test: TestCase): void {
  test("identifiers are assigned in the order of the rows, after those that exist; those that are kept are not assigned", async (opened) => {
    const { imports, clientStore, operatorPetStore } = opened;
    expect([await addPet(clientStore), await addPet(clientStore)]).toEqual([1n, 2n]);
    await imports.beginImport(FILE);
    await imports.importPets(...batchOf([{ ...rex(1n), name: "Mia" }], { onConflict: "replace" }));
    await imports.beginImport({ ...FILE, options: "" });
    const rows: ImportedPet[] = [
      { name: "a", categoryId: INT64_MAX },
      { name: "b", categoryId: INT64_MIN, status: "sold" },
    ];
    await imports.importPets(...batchOf(rows));
    await imports.beginImport(FILE);
    await imports.importPets(...batchOf([rex(9_007_199_254_740_993n), rex(7n)]));
    expect((await allPets(operatorPetStore)).slice(2)).toEqual([
      { id: 3n, name: "a", categoryId: INT64_MAX },
      { id: 4n, name: "b", categoryId: INT64_MIN, status: "sold" },
      { id: 7n, name: "Rex", categoryId: 1n },
      { id: 9_007_199_254_740_993n, name: "Rex", categoryId: 1n },
    ]);
    expect(await addPet(clientStore)).toBe(9_007_199_254_740_994n);
  });

  for (const [onConflict, name, counts, rejected] of [
    ["reject", "old", { added: 1, replaced: 0, skipped: 0 }, [0, 2]],
    ["skip", "old", { added: 1, replaced: 0, skipped: 2 }, []],
    ["replace", "new", { added: 1, replaced: 2, skipped: 0 }, []],
  ] as const) {
    test(`rows whose identifiers exist: ${onConflict}`, async ({
      imports,
      clientStore,
      operatorPetStore,
    }) => {
      await addPet(clientStore, { name: "old" });
      await imports.beginImport(FILE);
      const rows = [1n, 2n, 2n].map((id) => ({ id, name: "new", categoryId: 1n }));
      const result = await imports.importPets(...batchOf(rows, { onConflict }));
      expect(result).toMatchObject(counts);
      expect([...result.rejected.keys()]).toEqual([...rejected]);
      expect((await allPets(operatorPetStore)).map((pet) => pet.name)).toEqual([name, "new"]);
    });
  }

  test("a pet with a placed order keeps its status, and everything else is replaced", async (opened) => {
    const { imports, clientStore, operatorPetStore } = opened;
    const id = await addPet(clientStore, { name: "old" });
    const order = resultOf(await clientStore.placeOrder({ keyId: 1, petId: id }, AT)).id;
    await imports.beginImport(FILE);
    const rows = (["sold", "pending"] as const).map((status) => Object.assign(rex(id), { status }));
    const { rejected, replaced } = await imports.importPets(...batchOf(rows, { onConflict: "replace" }));
    expect(replaced).toBe(1);
    expect([...rejected]).toEqual([
      [0, new Invalid(`cannot change: pet ${id} has the placed order ${order}`, "status")],
    ]);
    expect(await operatorPetStore.getPet(id)).toEqual({ id, name: "Rex", categoryId: 1n, status: "pending" });
  });
}
