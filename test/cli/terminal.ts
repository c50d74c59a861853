import { EXECUTABLE, track } from "./cli.ts";

/** Runs a command on a terminal of its own. */
export function spawnOnTerminal(argv: readonly string[]) {
  const decoder = new TextDecoder();
  let output = "";
  let onOutput = () => {};
  const child = track(
    Bun.spawn([EXECUTABLE, ...argv], {
      terminal: {
        cols: 200,
        data(_terminal, bytes) {
          output += decoder.decode(bytes, { stream: true });
          onOutput();
        },
      },
    }),
  );
  return {
    child,
    /** What it has shown so far. */
    output: () => output.replaceAll("\r\n", "\n"),
    /** Resolves when it has shown the text. */
    until: (text: string) =>
      new Promise<void>((resolve) => {
        onOutput = () => {
          if (output.includes(text)) resolve();
        };
        onOutput();
      }),
  };
}
