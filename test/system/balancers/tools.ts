import { connect } from "node:net";
import { join } from "node:path";
import type { Header, HttpRequest } from "../../../trials/harness/http-connection.ts";
import {
  haproxy,
  type LoadBalancer,
  type LoadBalancerKind,
  type LoadBalancerOptions,
  startLoadBalancer,
} from "../../../trials/harness/load-balancer.ts";
import { until } from "../../timing.ts";

/** Sends a command to the admin socket of HAProxy, and gives its reply. */
export function haproxyCommand({ directory }: LoadBalancer, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = "";
    const socket = connect(join(directory, "admin.sock"), () => void socket.write(`${command}\n`));
    socket.on("data", (chunk) => void (reply += chunk.toString()));
    socket.on("close", () => resolve(reply));
    socket.on("error", reject);
  });
}

/**
 * Starts a load balancer for servers in this process. On a busy machine they may respond to a health check too late,
 * and HAProxy would take them out.
 */
export async function startWithoutHealthChecks(
  kind: LoadBalancerKind,
  servers: readonly number[],
  options?: LoadBalancerOptions,
): Promise<LoadBalancer> {
  const balancer = await startLoadBalancer(kind, servers, options);
  if (kind === haproxy) {
    // The socket appears after the port, and accepts connections later still.
    await until(async () => (await haproxyCommand(balancer, "show info").catch(() => "")) !== "", 10_000);
    for (const name of ["a", "b", "c"]) await haproxyCommand(balancer, `disable health petstore/${name}`);
  }
  return balancer;
}

export const JSON_BODY: Header = ["Content-Type", "application/json"];

export const keyHeader = (key: string): Header => ["Authorization", `Bearer ${key}`];

export const listPets = (key: string): HttpRequest => ({
  method: "GET",
  path: "/v1/pets?limit=1",
  headers: [keyHeader(key)],
});

export function createPet(key: string, name: string, idempotencyKey?: string): HttpRequest {
  const idempotency: readonly Header[] =
    idempotencyKey === undefined ? [] : [["Idempotency-Key", idempotencyKey]];
  return {
    method: "POST",
    path: "/v1/pets",
    headers: [keyHeader(key), JSON_BODY, ...idempotency],
    body: JSON.stringify({ name, categoryId: 1 }),
  };
}
