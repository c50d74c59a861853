import type { StopSignal } from "../../src/cli/terminal.ts";
import { parseStartMessage, spawnPetstore, type StartMessage } from "./cli.ts";

/** A server in a process of its own. */
export interface ServerProcess extends StartMessage {
  readonly child: ReturnType<typeof spawnPetstore>;
  /** Sends the signal and resolves with the exit code. */
  stop(signal: StopSignal | "SIGKILL"): Promise<number>;
  /** The lines of the log, after the server has stopped. */
  log(): Promise<string[]>;
}

/** Starts a server on a free port, unless a port is given; resolves when it accepts requests. */
export function serve(data: string, ...argv: string[]): Promise<ServerProcess> {
  const anyPort = argv.includes("--port") ? [] : ["--port", "0"];
  return started(spawnPetstore(["serve", ...anyPort, "--data", data, ...argv]));
}

export async function started(child: ServerProcess["child"]): Promise<ServerProcess> {
  return {
    ...parseStartMessage(await readStartMessage(child)),
    child,
    stop(signal) {
      child.kill(signal);
      return child.exited;
    },
    log: async () => (await child.stderr.text()).split("\n").slice(0, -1),
  };
}

/** The server writes the message in one piece, so the row of the rate limits means that all of it is here. */
async function readStartMessage({ stdout, stderr }: ServerProcess["child"]): Promise<string> {
  const decoder = new TextDecoder();
  let output = "";
  for await (const chunk of stdout) {
    output += decoder.decode(chunk, { stream: true });
    if (output.includes("\n  Rate limits ")) return output;
  }
  throw new Error(`the server did not start: ${await stderr.text()}`);
}
