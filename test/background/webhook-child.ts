/* Delivers the audit trail as a server does, with short waits: `bun webhook-child.ts DATABASE RECEIVER`. */

import { createClock } from "../../src/clock.ts";
import { webhookSecrets } from "../../src/config/value-types.ts";
import { silentLog } from "../../src/observe/log.ts";
import { WebhookSender } from "../../src/background/webhook-delivery.ts";
import { openPostgres } from "../../src/store/postgres/open-postgres.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";

/** The URL of a database of PostgreSQL, or the path of one of SQLite. */
const [database = "", url = ""] = process.argv.slice(2);
const isPostgres = URL.canParse(database);
const stores = isPostgres ? await openPostgres(database, { timeoutMs: 60_000 }) : openSqlite(database);
const clock = createClock();
const sender = new WebhookSender({
  ...stores,
  url,
  secrets: () => webhookSecrets.parse(WEBHOOK_SECRET) ?? [],
  events: ["*"],
  environment: "production",
  isOnlyServer: !isPostgres,
  server: `${process.pid}`,
  clock,
  retentionNow: () => clock.now(),
  log: silentLog,
  times: { pollMs: 20, beatMs: 200, silentMs: 2_000, retryFactor: 0.1 },
});
// The timers of the sender let a process end.
setInterval(() => sender.counts, 60_000);
