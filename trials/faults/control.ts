import { SQL } from "bun";
import { Child } from "../harness/child.ts";

const REQUEST_EVERY_MS = 20;
const CONNECT_EVERY_MS = 200;
/** The round trips of a decision about a key that is not stored yet: it is missing, is added and locked, is stored. */
const ROUND_TRIPS = 3;

export type Control = Awaited<ReturnType<typeof startControl>>;

/**
 * Starts a server in a process of its own that only responds, and gets requests continuously. Neither the fault nor
 * Petstore affects it, so its response times show the delay of the machine itself. With `takesOver`, the same is
 * measured for a connection to that database.
 */
export async function startControl(takesOver?: string) {
  const server = 'Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") })';
  const child = new Child([process.execPath, "-e", `console.log(${server}.url.href)`]);
  const [url] = await child.line(/^http\S+$/);
  const request = timeEvery(REQUEST_EVERY_MS, () => fetch(url));
  const takeOver =
    takesOver === undefined ? undefined : timeEvery(CONNECT_EVERY_MS, () => connectTo(takesOver));
  return {
    /** The longest response time since a time of `performance.now()`. */
    longestSince: request.longestSince,
    /** The longest time for a new connection and what a first decision sends on it. */
    longestTakeOverSince: (time: number) => takeOver?.longestSince(time),
    async stop() {
      request.stop();
      takeOver?.stop();
      await child.stop("SIGKILL");
    },
  };
}

async function connectTo(url: string): Promise<void> {
  await using sql = new SQL(url, { max: 1 });
  for (let trip = 0; trip < ROUND_TRIPS; trip++) await sql.unsafe("SELECT 1");
}

/** Does work at an interval, however long it takes, and records the time that it takes. */
function timeEvery(everyMs: number, work: () => Promise<unknown>) {
  const times: { readonly endedAt: number; readonly ms: number }[] = [];
  const timed = async () => {
    const startedAt = performance.now();
    await work();
    const endedAt = performance.now();
    times.push({ endedAt, ms: endedAt - startedAt });
  };
  // Work that is aborted at the end does not count.
  const timer = setInterval(() => void timed().catch(() => {}), everyMs);
  return {
    longestSince: (time: number) =>
      Math.max(0, ...times.flatMap(({ endedAt, ms }) => (endedAt >= time ? ms : []))),
    stop: () => clearInterval(timer),
  };
}
