/* Runs `npx bun trials/faults/webhook.ts`; its --help describes the options. */

import { SQL } from "bun";
import { openPostgres } from "../../src/store/postgres/open-postgres.ts";
import { integer, runCommand } from "../harness/command-line.ts";
import { Fleet } from "../harness/fleet.ts";
import { startPostgres } from "../harness/postgres.ts";
import { runTrials } from "../harness/trials.ts";
import { startReceiver, webhookFlags } from "../harness/webhook-receiver.ts";

const HELP = `Usage: npx bun trials/faults/webhook.ts [OPTIONS]

Writes audit entries to the database of three servers, which deliver them to a receiver on this machine. The receiver is
down for a while, and the server that delivers is killed twice. Every entry has to arrive, in order, with a valid signature
and the same webhook-id each time. Exits with 1 otherwise.

  --events N      Audit entries (default: 1000)
  --down SECONDS  How long the receiver is down (default: 60)
  --help          Show this
`;

/** Returns the index of the server that delivers: only that one knows what waits. */
async function findSender(fleet: Fleet): Promise<number> {
  for (;;) {
    for (const [index, { adminUrl }] of fleet.servers.entries()) {
      const metrics = await fetch(`${adminUrl}/metrics`).then((response) => response.text(), String);
      if (/^petstore_webhook_waiting_entries /m.test(metrics)) return index;
    }
    await Bun.sleep(200);
  }
}

async function writtenEntries(url: string): Promise<number[]> {
  await using sql = new SQL(url, { max: 1 });
  const rows = await sql<{ id: number }[]>`
    SELECT id::int FROM production.audit WHERE action = 'key.banned' ORDER BY id`;
  return rows.map(({ id }) => id);
}

async function deliver(events: number, downMs: number) {
  const startedAt = performance.now();
  const postgres = await startPostgres({ durable: true });
  await using receiver = startReceiver();
  const webhook = webhookFlags(receiver, "key.banned");
  const admin = ["--admin-address", "127.0.0.1:0", "--metrics-public"];
  const storage = ["--database-url", postgres.url];
  const fleet = await Fleet.start({ size: 3, storage, flags: [...webhook, ...admin] });
  await findSender(fleet);
  const writers = await Promise.all(
    [1, 2, 3].map(() => openPostgres(postgres.url, { schema: "production" })),
  );
  /** Each writer writes its share, at the same time as the others. */
  const write = (count: number) =>
    Promise.all(
      writers.map(async ({ audit }, i) => {
        for (let n = i; n < count; n += writers.length)
          await audit.recordAudit({ at: Date.now(), actor: { kind: "server" }, action: "key.banned" });
      }),
    );
  const kill = async () => {
    const index = await findSender(fleet);
    await fleet.stopServer(index, "SIGKILL");
    return index;
  };

  const early = Math.floor(events / 4);
  const firstKilled = await write(early).then(kill);
  await receiver.goAway();
  const writing = write(events - early);
  await Bun.sleep(downMs);
  receiver.comeBack();
  await writing;
  await receiver.when(() => receiver.accepted().length >= events / 2);
  await fleet.startServer(firstKilled);
  await kill();
  await receiver.when(() => receiver.accepted().length >= events);

  const problems: string[] = [];
  const accepted = receiver.accepted();
  const inOrder = await writtenEntries(postgres.url);
  if (accepted.length !== events)
    problems.push(`${events - accepted.length} of ${events} entries are missing`);
  if (accepted.some((id, i) => id !== inOrder[i])) problems.push("entries arrived in another order");
  if (receiver.unsigned.length > 0) problems.push(`${receiver.unsigned.length} signatures are wrong`);
  const byEntry = Map.groupBy(receiver.received, ({ entry }) => entry).values();
  if (byEntry.some((each) => new Set(each.map(({ id }) => id)).size > 1))
    problems.push("a repeat has another webhook-id");
  for (const writer of writers) await writer.close();
  await fleet.stop();
  await postgres.discard();
  const requests = receiver.received.length;
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  return { problems, note: `${accepted.length} entries in order, ${requests} requests, ${seconds} s` };
}

await runCommand({
  name: "faults/webhook",
  help: HELP,
  flags: { events: integer(1_000, 100_000), down: integer(60, 3_600) },
  maxMinutes: 15,
  main: ({ events, down }) =>
    runTrials({
      trials: [{ title: `${events} audit entries, the receiver down for ${down} s, two kills` }],
      run: () => deliver(events, down * 1_000),
    }),
});
