import type { StopSignal } from "../../src/cli/terminal.ts";
import { parseStartMessage, spawnPetstore } from "./cli.ts";

type Child = ReturnType<typeof spawnPetstore>;

/** A server in a process of its own. */
export type ServerProcess = Awaited<ReturnType<typeof started>>;

/** Starts a server on a free port, unless a port is given; resolves when it accepts requests. */
export function serve(data: string, ...argv: string[]): Promise<ServerProcess> {
  const anyPort = argv.includes("--port") ? [] : ["--port", "0"];
  return started(spawnPetstore(["serve", ...anyPort, "--data", data, ...argv]));
}

export async function started(child: Child) {
  return {
    ...parseStartMessage(await readStartMessage(child)),
    child,
    /** Sends the signal and resolves with the exit code. */
    stop(signal: StopSignal | "SIGKILL") {
      child.kill(signal);
      return child.exited;
    },
    /** The lines of the log, after the server has stopped. */
    log: async () => (await child.stderr.text()).split("\n").slice(0, -1),
  };
}

/** The server writes the message in one piece, so the row of the rate limits means that all of it is here. */
async function readStartMessage({ stdout, stderr }: Child): Promise<string> {
  const decoder = new TextDecoder();
  let output = "";
  for await (const chunk of stdout) {
    output += decoder.decode(chunk, { stream: true });
    if (output.includes("\n  Rate limits ")) return output;
  }
  throw new Error(`the server did not start: ${await stderr.text()}`);
}
