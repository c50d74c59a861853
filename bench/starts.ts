import type { ContestantId } from "./contestants.ts";
import { type Server, startServer } from "./servers.ts";
import type { Setting } from "./stage.ts";

/** Starts and stops a server so many times, and leaves the last one running. */
export async function startRepeatedly(
  id: ContestantId,
  setting: Setting,
  times: number,
): Promise<{ server: Server; startMs: number[] }> {
  let server = await startServer(id, setting);
  const startMs = [server.startMs];
  while (startMs.length < times) {
    await setting.stage.processes.stop(server);
    server = await startServer(id, setting);
    startMs.push(server.startMs);
  }
  return { server, startMs };
}
