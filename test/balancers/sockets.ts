import { readFileSync } from "node:fs";

const ESTABLISHED = "01";

/** How many connections to a port of this machine are open, as the kernel lists them. */
export function openConnectionsTo(port: number): number {
  const here = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n");
  return lines.filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return local.endsWith(here) && state === ESTABLISHED;
  }).length;
}
