import { afterAll, describe, expect, test } from "bun:test";
import { contentsIn, postgresIn, sqliteIn } from "../../../trials/harness/contents.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import type { WorkProgress } from "../../../src/archive/progress.ts";
import { fillNewTables } from "../../../src/archive/fill-tables.ts";
import type { TableStore } from "../../../src/store/sql/table-store.ts";
import { fillData } from "../../archive/sample-data.ts";
import { cleanUp, cliDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

const data = cliDirectory();
await fillData(data, 2_100);
const from = sqliteIn(data);
const original = await contentsIn(from);

async function fill(to: TableStore, onProgress?: (reached: WorkProgress) => void): Promise<void> {
  await using source = await from.read();
  await fillNewTables({ source, to, onProgress });
}

describe.each(["PostgreSQL", "SQLite"])("new tables in %s", (engine) => {
  const newTables = async () =>
    engine === "PostgreSQL" ? postgresIn(await postgresUrl()) : sqliteIn(cliDirectory());

  test("are seen by nobody if they are interrupted, and begin again", async () => {
    const to = await newTables();
    for (const batches of [1, 3, 4]) {
      let left = batches;
      const interrupt = ({ step }: WorkProgress) => {
        if (step === "copying" && --left === 0) throw new Error("interrupted");
      };
      await expect(fill(to, interrupt)).rejects.toThrow("interrupted");
      expect(await to.exists()).toBeFalse();
    }
    await fill(to);
    expect(await contentsIn(to)).toEqual(original);
  });

  test("that lack a row of their source are not published", async () => {
    const tables = await newTables();
    const to: TableStore = {
      ...tables,
      async create() {
        const target = await tables.create();
        const insert: typeof target.insert = (table, rows) =>
          target.insert(table, table.name === "pets" ? rows.slice(0, -1) : rows);
        return { ...target, insert };
      },
    };
    await expect(fill(to)).rejects.toThrow("the copy differs from its source in pets");
    expect(await tables.exists()).toBeFalse();
  });
});
