import { Child } from "../harness/child.ts";

const INTERVAL_MS = 20;

export type ControlServer = Awaited<ReturnType<typeof startControlServer>>;

/**
 * A server in a process of its own that does nothing but respond, and gets requests all the time. How long it takes is
 * what the machine itself adds to every response time, since neither the fault nor Petstore affects it.
 */
export async function startControlServer() {
  const child = new Child([process.execPath, import.meta.path]);
  const [url] = await child.line(/^http\S+$/);
  const responses: { readonly endedAt: number; readonly ms: number }[] = [];
  const request = async () => {
    const startedAt = performance.now();
    await fetch(url);
    const endedAt = performance.now();
    responses.push({ endedAt, ms: endedAt - startedAt });
  };
  // A request that breaks off when the server is stopped does not count.
  const timer = setInterval(() => void request().catch(() => {}), INTERVAL_MS);
  return {
    /** By `performance.now()`. */
    longestSince: (time: number) =>
      Math.max(0, ...responses.flatMap(({ endedAt, ms }) => (endedAt >= time ? ms : []))),
    async stop() {
      clearInterval(timer);
      await child.stop("SIGKILL");
    },
  };
}

if (import.meta.main) {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  process.stdout.write(`${server.url.href}\n`);
}
