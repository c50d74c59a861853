import { Petstore } from "../../src/client/index.ts";
import { HttpConnection, type HttpResponse } from "./http-connection.ts";

export type RateLimitStatus = Awaited<ReturnType<typeof rateLimitStatus>>;

/** Lists one pet and returns the rate limit headers. */
export async function rateLimitStatus(url: string, key: string) {
  const response = await fetch(`${url}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
  const body: unknown = await response.json();
  const number = (name: string) => Number(response.headers.get(name));
  return {
    status: response.status,
    code: errorCode(body),
    limit: number("x-ratelimit-limit"),
    remaining: number("x-ratelimit-remaining"),
    retryAfter: number("retry-after"),
  };
}

export function errorCode(body: unknown): string | undefined {
  return typeof body === "object" && body !== null && "code" in body ? String(body.code) : undefined;
}

export async function createPet(baseUrl: string, key: string): Promise<void> {
  await new Petstore({ baseUrl, key }).pets.create({ name: "Rex", categoryId: 7n, status: "available" });
}

export type Audit = Awaited<ReturnType<typeof audit>>;

/** Compares the listed pets with the acknowledged creates, which are identifiers by name. */
export async function audit(baseUrl: string, key: string, acknowledged: ReadonlyMap<string, string>) {
  const found = new Map<string, string[]>();
  for await (const { id, name } of new Petstore({ baseUrl, key }).pets.list())
    found.set(name, [...(found.get(name) ?? []), String(id)]);
  return {
    acknowledged: acknowledged.size,
    /** Pets that are missing or have another identifier. */
    lost: [...acknowledged].filter(([name, id]) => !found.get(name)?.includes(id)).map(([name]) => name),
    duplicated: [...found].filter(([, ids]) => ids.length > 1).map(([name]) => name),
  };
}

const BATCH = 100;

/**
 * Sends concurrent requests, spread evenly over the ports, each on a connection of its own. All connections are open
 * before the first request is sent, so that every request is sent before the first response arrives.
 */
export async function sendBurst(
  ports: readonly number[],
  key: string,
  count: number,
): Promise<HttpResponse[]> {
  return await Promise.all(await beginBurst(ports, key, count));
}

/** Sends as `sendBurst` does, with a promise for each response, which is rejected if the connection breaks. */
export async function beginBurst(
  ports: readonly number[],
  key: string,
  count: number,
): Promise<Promise<HttpResponse>[]> {
  const connections: HttpConnection[] = [];
  while (connections.length < count) {
    const batch = Math.min(BATCH, count - connections.length);
    const opening = Array.from({ length: batch }, (_, i) =>
      HttpConnection.open(ports[i % ports.length] ?? 0),
    );
    connections.push(...(await Promise.all(opening)));
  }
  const request = { path: "/v1/pets?limit=1", headers: [["Authorization", `Bearer ${key}`]] } as const;
  return connections.map((connection) => connection.send(request).finally(() => connection.close()));
}
