import { afterEach, expect, test } from "bun:test";
import { anyNetwork, startProxy } from "../../../trials/harness/patroni.ts";
import { until, untilFound } from "../../timing.ts";

/** Two checks that fail, at an interval of a second and a quarter, with their timeouts. */
const NOTICED_WITHIN_MS = 5_000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A PostgreSQL server that writes its name to each connection, and Patroni beside it. */
function startNode(address: string, name: string) {
  const open = (socket: Bun.Socket) => void socket.write(name);
  const postgres = Bun.listen({ hostname: address, port: 5432, socket: { open, data() {} } });
  let isLeader = false;
  const patroni = Bun.serve({
    hostname: address,
    port: 8008,
    fetch: ({ url }) => new Response("", { status: isLeader && url.endsWith("/primary") ? 200 : 503 }),
  });
  closing.push(
    () => postgres.stop(true),
    () => patroni.stop(true),
  );
  return { lead: (leads: boolean) => (isLeader = leads) };
}

/** Connects to HAProxy. The name of the server is there once it has written it. */
async function connect(hostname: string) {
  const seen = { name: "", hasEnded: false };
  const socket = await Bun.connect({
    hostname,
    port: 5432,
    socket: {
      data: (_, bytes) => void (seen.name += bytes.toString()),
      close: () => void (seen.hasEnded = true),
    },
  });
  closing.push(() => socket.end());
  return seen;
}

test("HAProxy leads to the server that is Patroni's leader, and ends connections to one that no longer is", async () => {
  const network = anyNetwork();
  const nodes = ["db1", "db2", "db3"].map((name, i) => startNode(`${network}.2${i + 1}`, name));
  nodes[1]?.lead(true);
  const proxy = startProxy(network);
  closing.push(() => proxy.stop());
  /** A connection to this server, once HAProxy leads there. */
  const leadsTo = async (name: string) => {
    return untilFound(async () => {
      const seen = await connect(`${network}.20`).catch(() => undefined);
      if (seen) await until(() => seen.name !== "" || seen.hasEnded, NOTICED_WITHIN_MS);
      return seen?.name === name ? seen : undefined;
    }, NOTICED_WITHIN_MS);
  };
  const connection = await leadsTo("db2");
  expect(connection.hasEnded).toBe(false);
  nodes[1]?.lead(false);
  nodes[2]?.lead(true);
  await until(() => connection.hasEnded, NOTICED_WITHIN_MS);
  await leadsTo("db3");
}, 60_000);
