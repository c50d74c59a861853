import { join } from "node:path";
import type { Processes } from "./processes.ts";
import type { LimiterFigures } from "./results.ts";

/** The limiter by itself, without HTTP. It judges its own bars too, hence the exit code is left aside. */
export async function measureLimiter(processes: Processes): Promise<LimiterFigures> {
  const script = join(import.meta.dir, "limiter.ts");
  const running = processes.start([process.execPath, script, "--json"], { name: "limiter", stdout: "pipe" });
  const { stdout } = running.child;
  const output = stdout instanceof ReadableStream ? await new Response(stdout).text() : "";
  try {
    return JSON.parse(output) as LimiterFigures;
  } catch {
    throw new Error(`the limiter's benchmark failed: ${running.complaint()}`);
  }
}
