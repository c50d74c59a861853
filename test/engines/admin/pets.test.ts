import { afterAll, test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { findsLastPetAtOnce } from "../../admin/search-cases.ts";
import { cleanUp } from "../../cli/cli.ts";

afterAll(cleanUp);

test("a pet is found by its identifier at once, among 100,000 on PostgreSQL", async () => {
  await findsLastPetAtOnce({ databaseUrl: await postgresUrl() });
}, 60_000);
