import type { Variables } from "../../src/config/parse-options.ts";
import { until } from "../timing.ts";
import { EXECUTABLE, cliDirectory, track } from "./cli.ts";

/** Runs a command on a terminal of its own. */
export function spawnOnTerminal(argv: readonly string[], variables: Variables = {}) {
  const decoder = new TextDecoder();
  let output = "";
  const child = track(
    Bun.spawn([EXECUTABLE, ...argv], {
      env: { ...process.env, XDG_CONFIG_HOME: cliDirectory(), ...variables },
      terminal: {
        cols: 200,
        data: (_terminal, bytes) => void (output += decoder.decode(bytes, { stream: true })),
      },
    }),
  );
  return {
    child,
    /** What it has shown so far. */
    output: () => output.replaceAll("\r\n", "\n"),
    /** Resolves when it has shown the text. */
    until: (text: string) => until(() => output.includes(text), 10_000),
  };
}
