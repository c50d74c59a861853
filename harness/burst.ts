import { HttpConnection, type HttpResponse } from "./http-connection.ts";

const BATCH = 100;

/**
 * Concurrent requests, spread evenly over the ports, each on a connection of its own. All connections are open before
 * the first request is sent, so that every request is sent before the first response arrives.
 */
export async function sendBurst(
  ports: readonly number[],
  key: string,
  count: number,
): Promise<HttpResponse[]> {
  const connections: HttpConnection[] = [];
  while (connections.length < count) {
    const batch = Math.min(BATCH, count - connections.length);
    const opening = Array.from({ length: batch }, (_, i) =>
      HttpConnection.open(ports[i % ports.length] ?? 0),
    );
    connections.push(...(await Promise.all(opening)));
  }
  const request = { path: "/v1/pets?limit=1", headers: [["Authorization", `Bearer ${key}`]] } as const;
  const responses = await Promise.all(connections.map((connection) => connection.send(request)));
  for (const connection of connections) connection.close();
  return responses;
}
