import { test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { killAndCompare } from "../../admin/kill-and-compare.ts";

test("on PostgreSQL SIGKILL loses no entry of the audit trail of an acknowledged change or sign-in", async () => {
  await killAndCompare(["--database-url", await postgresUrl()]);
}, 180_000);
