import type { Service } from "../service.ts";

export interface Proxy {
  readonly baseUrl: string;
  /** Of the responses that the service has sent, in order. */
  readonly statuses: readonly number[];
  stop(): Promise<void>;
}

/** Forwards requests to a service. `change` sees each response and can give the client another. */
export function startProxy(
  { url }: Service,
  change: (response: Response) => Response | undefined = () => undefined,
): Proxy {
  const { origin } = new URL(url);
  const statuses: number[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      const response = await fetch(origin + pathname + search, { method, headers, body });
      statuses.push(response.status);
      return change(response) ?? response;
    },
  });
  return {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    statuses,
    stop: () => server.stop(true),
  };
}
