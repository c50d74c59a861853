import { expect, test } from "bun:test";
import { generateSecret } from "../../../src/domain/secrets.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { bearer } from "../../bearer.ts";
import { cleanUpAfterAll, InProcessCli } from "../../cli/cli.ts";
import { databaseAt } from "../store/postgres-database.ts";

cleanUpAfterAll();

type Peer = Bun.Socket<{ peer: Peer | undefined; early: Buffer[] }>;

/** The first byte of a message with the values of a statement, which the server knows already. It is not counted. */
const BIND = 0x42;

/** A way to PostgreSQL that can be cut: connections break, and new ones are refused. */
function wayTo(server: URL) {
  const sockets = new Set<Peer>();
  let sends = 0;
  let maxSends = Infinity;
  const forward = {
    data({ data }: Peer, bytes: Buffer) {
      if (data.peer) data.peer.write(bytes);
      else data.early.push(Buffer.from(bytes));
    },
    close(closed: Peer) {
      sockets.delete(closed);
      closed.data.peer?.end();
    },
  };
  const listen = (port: number) =>
    Bun.listen<Peer["data"]>({
      hostname: "127.0.0.1",
      port,
      socket: {
        async open(client) {
          client.data = { peer: undefined, early: [] };
          sockets.add(client);
          const data = { peer: client, early: [] };
          const { hostname } = server;
          const peer = await Bun.connect({ hostname, port: Number(server.port), socket: forward, data });
          if (!sockets.has(client)) return void peer.terminate();
          sockets.add(peer);
          client.data.peer = peer;
          for (const bytes of client.data.early) peer.write(bytes);
        },
        data(client, bytes) {
          if (bytes[0] !== BIND) sends++;
          if (sends > maxSends) cut();
          else forward.data(client, bytes);
        },
        close: forward.close,
      },
    });
  let listener: Bun.TCPSocketListener<Peer["data"]> | undefined = listen(0);
  const { port } = listener;
  const cut = () => {
    listener?.stop(true);
    listener = undefined;
    for (const socket of sockets) socket.terminate();
  };
  const url = new URL(server);
  url.port = `${port}`;
  return {
    url: url.href,
    get sends() {
      return sends;
    },
    get isCut() {
      return listener === undefined;
    },
    cutAfter(count: number) {
      maxSends = count;
    },
    repair() {
      maxSends = Infinity;
      listener ??= listen(port);
    },
    [Symbol.dispose]: cut,
  };
}

const isListening = (hostname: string, port: number) =>
  Bun.connect({
    hostname,
    port,
    socket: { open: (socket) => void socket.end(), data() {} },
  }).then(
    () => true,
    () => false,
  );

/** Whether a server accepted a connection before the work was over. */
async function listenedDuring(hostname: string, port: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  void work.finally(() => over.abort()).catch(() => {});
  while (!over.signal.aborted) {
    if (await isListening(hostname, port)) return true;
    await Bun.sleep(1);
  }
  return false;
}

const authorization = bearer(generateSecret("production"));

/** No other program listens here: a port of 127.0.0.1 that is free now may be taken before the server listens. */
const HOST = `127.${1 + (process.pid % 250)}.7.1`;

async function startThrough(way: ReturnType<typeof wayTo>) {
  const cli = new InProcessCli();
  cli.isTerminal = true;
  const port = freePort();
  const starting = cli.serve(["--database-url", way.url, "--host", HOST, "--port", `${port}`]);
  const hasListened = listenedDuring(HOST, port, starting);
  const started = await starting.then(
    (server) => ({ server }),
    (error: unknown) => ({ error }),
  );
  return { ...started, hasListened: await hasListened };
}

/** Starts servers on a database without keys and operators, which fails after so many sends. */
async function openLane() {
  const url = await postgresUrl();
  const database = databaseAt(url);
  return {
    async start(maxSends: number) {
      using way = wayTo(new URL(url));
      way.cutAfter(maxSends);
      const started = await startThrough(way);
      if ("error" in started) {
        const { error, hasListened } = started;
        if (hasListened) throw new Error("the server ended after it had listened", { cause: error });
        return undefined;
      }
      const { server } = started;
      const { sends, isCut } = way;
      const status = async () => (await fetch(`${server.url}/pets`, { headers: authorization })).status;
      if (isCut) expect(await status()).toBe(503);
      way.repair();
      for (let now = await status(); now !== 401; now = await status()) {
        expect(now).toBe(503);
        await Bun.sleep(20);
      }
      expect((await server.stop()).code).toBe(0);
      await database.sql`TRUNCATE production.api_keys, production.operators CASCADE`;
      return { sends, text: `${server.message}${server.lines.join("\n")}` };
    },
    close: () => database[Symbol.asyncDispose](),
  };
}

const LANES = 2;

test("PostgreSQL fails at any moment of a start: a server that has accepted a connection responds with 503, and recovers", async () => {
  const lanes = Array.from({ length: LANES }, async (_, n) => {
    const { start, close } = await openLane();
    // The first one creates the tables.
    await start(Infinity);
    const whole = await start(Infinity);
    let texts = "";
    for (let sends = (whole?.sends ?? 0) - n; ; sends -= LANES) {
      const outcome = await start(sends);
      if (outcome === undefined) break;
      texts += outcome.text;
    }
    await close();
    return texts;
  });
  const texts = (await Promise.all(lanes)).join("\n");
  expect(texts).toContain('"settings.save-failed"');
  expect(texts).toContain('"key.first-failed"');
  expect(texts).toContain("\nIf there is no key, create one: petstore keys create --name NAME --plan free\n");
}, 180_000);
