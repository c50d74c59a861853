import { expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { startService } from "../service.ts";
import { directoryAt } from "../data-directory.ts";
import { auditRetentionOf } from "../../src/config/audit-retention.ts";
import { messageOf } from "../../src/runtime/message-of.ts";

const DAY_MS = 86_400_000;
const storing = (value?: string) => ({
  readValues: () => (value === undefined ? {} : { "audit-retention": value }),
});

test("--audit-retention: the setting of a server, or 400 days", async () => {
  expect(SETTINGS["audit-retention"].defaultText).toBe("400d");
  expect(await auditRetentionOf(undefined, storing())).toBe(400 * DAY_MS);
  expect(await auditRetentionOf(undefined, storing(`${400 * DAY_MS}`))).toBe(400 * DAY_MS);
  for (const given of [30 * DAY_MS, null]) {
    expect(await auditRetentionOf(given, storing())).toBe(given);
    expect(await auditRetentionOf(given, storing(`${90 * DAY_MS}`))).toBe(given);
  }
});

test.each([
  ["null", "forever"],
  [`${3_650 * DAY_MS}`, "3650d"],
  [`${30 * DAY_MS}`, "30d"],
])("what release 1.3 has stored for all servers is not replaced by the default: %s", async (stored, text) => {
  await using service = await startService();
  const { storedValues, close } = openSqlite(directoryAt(service.dataDir).files.database);
  await storedValues.saveValues({ "audit-retention": stored });
  await close();
  const error: unknown = await service.restart().catch((reason: unknown) => reason);
  expect(messageOf(error)).toBe(
    `release 1.3 has stored --audit-retention ${text} for all servers; since 2.0 it is a setting of each server, so start this one with it, or with another value`,
  );
});
