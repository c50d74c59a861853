import { expect } from "bun:test";
import { InProcessCli } from "../cli/cli.ts";
import { startAdminService } from "./admin-service.ts";
import type { TestConfig } from "../service.ts";

/** The last one of 100,000 pets is on the first page of a search for its identifier, on whatever database. */
export async function findsLastPetAtOnce(config: TestConfig = {}): Promise<void> {
  await using service = await startAdminService({}, config);
  const { databaseUrl } = config;
  const where = databaseUrl ? ["--database-url", databaseUrl] : ["--data", service.dataDir];
  const cli = new InProcessCli();
  cli.input = `name,categoryId\n${"Rex,1\n".repeat(99_999)}Rex 100000,1\n`;
  expect(await cli.json("import", "-", ...where)).toMatchObject({ added: 100_000 });
  const find = (search: string) => service.ok(`/api/pets?search=${search}`);
  expect(await find("99999")).toMatchObject({ items: [{ id: 99_999, name: "Rex" }] });
  expect(await find("17")).toMatchObject({ items: [{ id: 17 }] });
  expect(await find("100001")).toMatchObject({ items: [] });
}
