import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { hangupIsIgnored, stopOnSignals, type StopSignal } from "../../src/cli/terminal.ts";

/** A process that records signals and exits. */
function fakeProcess({ underNohup = false } = {}) {
  const listeners = new Map<string, () => void>();
  const exits: number[] = [];
  const errors: string[] = [];
  let ms = 0;
  return {
    exits,
    errors,
    send: (signal: StopSignal, afterMs: number) => {
      ms += afterMs;
      listeners.get(signal)?.();
    },
    source: {
      on: (signal: string, listener: () => void) => listeners.set(signal, listener),
      exit: (code: number) => void exits.push(code),
      writeError: (line: string) => void errors.push(line),
      elapsed: () => ms,
      ignoresHangup: () => underNohup,
    },
  };
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("signals", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "the first signal starts a clean stop and does not exit: %s",
    async (signal) => {
      const { source, send, exits } = fakeProcess();
      const stopped = stopOnSignals(source, 0);
      send(signal, 0);
      expect(await stopped).toBe(signal);
      expect(exits).toEqual([]);
    },
  );

  test("a process started with nohup keeps ignoring SIGHUP", async () => {
    const { source, send, exits } = fakeProcess({ underNohup: true });
    const stopped = stopOnSignals(source, 0);
    send("SIGHUP", 0);
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

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("a second signal exits at once: %s, exit status %d", async (signal, code) => {
    const { source, send, exits } = fakeProcess();
    const stopped = stopOnSignals(source, 0);
    send("SIGINT", 0);
    await stopped;
    send(signal, 1_000);
    expect(exits).toEqual([code]);
  });

  test("a Ctrl-C that npm forwards is not a second signal", async () => {
    const { source, send, exits } = fakeProcess();
    const stopped = stopOnSignals(source, 0);
    send("SIGINT", 0);
    send("SIGINT", 20);
    await stopped;
    expect(exits).toEqual([]);
  });

  test("a stop that takes too long exits after 9 to 10 seconds", async () => {
    const { source, send, exits, errors } = fakeProcess();
    const stopped = stopOnSignals(source, 0);
    send("SIGTERM", 0);
    await stopped;
    jest.advanceTimersByTime(9_000);
    expect(exits).toEqual([]);
    jest.advanceTimersByTime(999);
    expect(exits).toEqual([1]);
    expect(errors).toEqual(["requests in progress did not finish in time; stopping without them"]);
  });

  test("the time of a stop begins after the drain delay; a second signal still exits at once", async () => {
    const { source, send, exits } = fakeProcess();
    const stopped = stopOnSignals(source, 300_000);
    send("SIGTERM", 0);
    await stopped;
    jest.advanceTimersByTime(309_000);
    expect(exits).toEqual([]);
    jest.advanceTimersByTime(999);
    expect(exits).toEqual([1]);
    send("SIGTERM", 1_000);
    expect(exits).toEqual([1, 143]);
  });
});
