/** Delivers the audit trail as a server does, with short waits: `bun webhook-child.ts DATABASE RECEIVER`. */
import { createClock } from "../../../src/clock.ts";
import { webhookSecret } from "../../../src/config/value-types.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { WebhookSender } from "../../../src/observe/webhook-delivery.ts";
import { openPostgres } from "../../../src/store/postgres/store.ts";
import { WEBHOOK_SECRET } from "../../../trials/harness/webhook-receiver.ts";

const [database = "", url = ""] = process.argv.slice(2);
const stores = await openPostgres(database, { timeoutMs: 60_000 });
const clock = createClock();
const sender = new WebhookSender({
  ...stores,
  target: { url, secret: webhookSecret.parse(WEBHOOK_SECRET) ?? new Uint8Array() },
  events: ["*"],
  environment: "production",
  isOnlyServer: false,
  server: `${process.pid}`,
  clock,
  retentionNow: () => clock.now(),
  log: silentLog,
  times: { pollMs: 20, beatMs: 200, silentMs: 2_000, retryFactor: 0.1 },
});
process.stdout.write("started\n");
// The timers of the sender let a process end.
setInterval(() => sender.counts, 60_000);
