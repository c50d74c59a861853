import { expect } from "bun:test";
import { type ExportKind, exportRows } from "../../src/archive/export.ts";
import type { ImportedPet } from "../../src/archive/imported-pets.ts";
import { type ImportStore, NO_PROGRESS } from "../../src/archive/import-store.ts";
import { PETS as PET_TABLE, type Row } from "../../src/store/sql/tables.ts";
import type { TableStore } from "../../src/store/sql/table-store.ts";
import { BY, storedSecret } from "../key-store-arguments.ts";
import { addPet, AT, type OpenedStores, type TestOn } from "./store-fixture.ts";

async function exported(tables: TableStore, kind: ExportKind): Promise<Record<string, unknown>[]> {
  await using reader = await tables.read();
  let text = "";
  const output = {
    write: async (data: string | Uint8Array) => void (text += String(data)),
    finish: () => {},
    close: () => {},
  };
  const rest = { isGzip: false, output, onProgress: () => {}, isStopped: () => false };
  await exportRows({ reader, kind, format: "ndjson", ...rest });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** More than a page of either database. */
const PETS = 12_000;

async function addPets(imports: ImportStore): Promise<void> {
  const pet = (i: number): ImportedPet => ({ name: `pet ${i + 1}`, categoryId: 1n });
  const rows = Array.from({ length: PETS }, (_, i) => pet(i));
  await imports.beginImport({ fingerprint: "f", source: "-", options: "", startedAt: AT });
  const progressAfter = () => ({ ...NO_PROGRESS, rows: PETS, added: PETS });
  const commit = { fingerprint: "f", rowsBefore: 0, progressAfter };
  await imports.importPets({ rows, onConflict: "reject" }, commit);
}

/** What every TableStore does, on whatever database. */
export function tableStoreConformance(test: TestOn<OpenedStores & { readonly imports: ImportStore }>): void {
  test("every pet is exported once, as it was when the export began; one that is left early leaves the database free", async (opened) => {
    const { tables, imports, clientStore } = opened;
    await addPets(imports);
    const pets: Row[] = [];
    const reader = await tables.read();
    for await (const rows of reader.rows(PET_TABLE)) {
      pets.push(...rows);
      await addPet(clientStore);
      await clientStore.placeOrder({ keyId: 1, petId: BigInt(PETS) }, AT);
    }
    expect(await reader.count(PET_TABLE)).toBe(PETS);
    await reader[Symbol.asyncDispose]();
    expect(pets.map(([id]) => id)).toEqual(Array.from({ length: PETS }, (_, i) => String(i + 1)));
    expect(pets.at(-1)?.slice(0, 4)).toEqual([String(PETS), `pet ${PETS}`, "1", null]);
    const left = await tables.read();
    for await (const rows of left.rows(PET_TABLE)) {
      expect(rows.length).toBeLessThan(PETS);
      break;
    }
    await left[Symbol.asyncDispose]();
    await addPet(clientStore);
    expect((await exported(tables, "pets")).length).toBeGreaterThan(PETS);
  });

  test("orders have their key, and keys no secrets", async ({ tables, clientStore, keys }) => {
    const by = { ...BY, at: AT };
    const key = await keys.createKey({ name: "app", plan: "free", createdAt: AT }, storedSecret(1), by);
    const other = await keys.createKey({ name: "b", plan: "pro", createdAt: AT }, storedSecret(2), by);
    const petId = await addPet(clientStore);
    await clientStore.placeOrder({ keyId: key.id, petId }, AT);
    const createdAt = new Date(AT).toISOString();
    expect(await exported(tables, "orders")).toEqual([
      { id: 1, petId: Number(petId), status: "placed", createdAt, keyId: key.id, closedAt: null },
    ]);
    const exportedKeys = await exported(tables, "keys");
    expect(exportedKeys).toMatchObject([{ id: key.id }, { id: other.id, plan: "pro" }]);
    expect(JSON.stringify(exportedKeys)).not.toContain(storedSecret(1).hash);
  });
}
