/**
 * A server that stands between clients and an API. `respond` gets each request as a function that forwards it, and
 * gives the client this response or another.
 */
export function startForwardingProxy(
  target: string,
  respond: (forward: () => Promise<Response>) => Promise<Response>,
) {
  const { origin } = new URL(target);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      return respond(() => fetch(origin + pathname + search, { method, headers, body }));
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) };
}
