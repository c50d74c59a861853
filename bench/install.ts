import { existsSync } from "node:fs";
import { join } from "node:path";
import { Misuse } from "./options.ts";

/** The peers have a package.json of their own, so that they never weigh on the main install. */
export function installPeers(say: (line: string) => void): void {
  if (existsSync(join(import.meta.dir, "node_modules", "fastify"))) return;
  say("Installing the peers (npm ci --prefix bench); this happens once.");
  const npm = ["npm", "ci", "--prefix", import.meta.dir, "--no-audit", "--no-fund", "--loglevel", "error"];
  const { success } = Bun.spawnSync(npm, { stdout: "ignore", stderr: "inherit" });
  if (!success) throw new Misuse("the peers cannot be installed; --peers none measures without them");
}

export function requireTools(): void {
  if (process.platform !== "linux") throw new Misuse("the benchmark reads /proc and needs Linux");
  if (Bun.which("wrk") === null)
    throw new Misuse("wrk is missing; install it (Debian, Ubuntu: apt-get install wrk)");
}
