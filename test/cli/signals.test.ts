import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { hangupIsIgnored, stopOnSignals, type StopSignal } from "../../src/cli/terminal.ts";

/** A process that records how it exits, while signals stop it. */
function stoppable({ underNohup = false, drainDelayMs = 0 } = {}) {
  const listeners = new Map<string, () => void>();
  const exits: number[] = [];
  const errors: string[] = [];
  let ms = 0;
  const stopped = stopOnSignals(
    {
      on: (signal: string, listener: () => void) => listeners.set(signal, listener),
      exit: (code: number) => void exits.push(code),
      writeError: (line: string) => void errors.push(line),
      elapsed: () => ms,
      ignoresHangup: () => underNohup,
    },
    drainDelayMs,
  );
  const send = (signal: StopSignal, afterMs = 0) => {
    ms += afterMs;
    listeners.get(signal)?.();
  };
  return { stopped, send, exits, errors };
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)(
  "%s: the first starts a clean stop, and a second one exits at once with %d",
  async (signal, code) => {
    const { stopped, send, exits } = stoppable();
    send(signal);
    expect(await stopped).toBe(signal);
    // npm forwards the Ctrl-C that the server has received itself.
    send(signal, 20);
    expect(exits).toEqual([]);
    send(signal, 1_000);
    expect(exits).toEqual([code]);
  },
);

test("a process started with nohup keeps ignoring SIGHUP", async () => {
  const { stopped, send, exits } = stoppable({ underNohup: true });
  send("SIGHUP");
  send("SIGTERM", 1_000);
  expect(await stopped).toBe("SIGTERM");
  expect(exits).toEqual([]);
});

test.each([
  ["Name:\tbun\nSigBlk:\t0000000000000001\nSigIgn:\t0000000001001000\n", false],
  ["Name:\tbun\nSigIgn:\t0000000001001001\nSigCgt:\t0000000000000000\n", true],
  ["SigIgn:\t000000000000000e\n", false],
  ["SigIgn:\t000000000000000f\n", true],
  ["", false],
])("SIGHUP is ignored according to %p: %p", (status, isIgnored) => {
  expect(hangupIsIgnored(status)).toBe(isIgnored);
});

test.each([0, 300_000])(
  "a stop that takes longer than 9 to 10 seconds after a drain delay of %d ms exits; a second signal still exits at once",
  async (drainDelayMs) => {
    const { stopped, send, exits, errors } = stoppable({ drainDelayMs });
    send("SIGTERM");
    await stopped;
    jest.advanceTimersByTime(drainDelayMs + 9_000);
    expect(exits).toEqual([]);
    jest.advanceTimersByTime(999);
    expect(exits).toEqual([1]);
    expect(errors).toEqual(["requests in progress did not finish in time; stopping without them"]);
    send("SIGTERM", 1_000);
    expect(exits).toEqual([1, 143]);
  },
);
