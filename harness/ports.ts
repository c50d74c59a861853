import { readFileSync } from "node:fs";

const ATTEMPTS = 5;

/**
 * A free port below the range from which the kernel takes the ports of outgoing connections. Inside that range, an
 * outgoing connection could take the port of a server that is down; a client that retries until the port opens could
 * even be connected to itself.
 */
export function freePort(): number {
  const end = Number.parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"), 10);
  const start = Math.min(10_000, end - 1_000);
  for (;;) {
    const port = start + Math.floor(Math.random() * (end - start));
    if (isFree(port)) return port;
  }
}

export function freePorts(count: number): number[] {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(freePort());
  return [...ports];
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

/** For servers that cannot choose a port themselves. Another process may take the port before the server does. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(freePort());
    } catch (error) {
      if (attempt === ATTEMPTS || !/already in use/i.test(String(error))) throw error;
    }
  }
}
