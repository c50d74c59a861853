import { readFileSync } from "node:fs";

/**
 * Ports to listen on that stay free while nobody does: from below the range that outgoing connections take theirs from.
 * Within it, one of those may come to sit on the port of a server that is away. And whoever knocks at such a port
 * until it opens may be given that very port to knock from: it is then connected with itself, and answered in its
 * own words.
 */
export function listeningPorts(count: number): number[] {
  const range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8");
  const end = Number.parseInt(range, 10);
  const start = Math.min(10_000, end - 1_000);
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = start + Math.floor(Math.random() * (end - start));
    if (isFree(port)) ports.add(port);
  }
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
