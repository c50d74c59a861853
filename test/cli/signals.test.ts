import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { ignoresHangup, type StopSignal, stopOnSignals } from "../../src/cli/signals.ts";

/** A process that can be sent signals and does not end. */
function fakeProcess({ underNohup = false } = {}) {
  const listeners = new Map<string, () => void>();
  const exits: number[] = [];
  const complaints: string[] = [];
  let ms = 0;
  return {
    exits,
    complaints,
    send: (signal: StopSignal, afterMs: number) => {
      ms += afterMs;
      listeners.get(signal)?.();
    },
    source: {
      on: (signal: string, listener: () => void) => listeners.set(signal, listener),
      exit: (code: number) => void exits.push(code),
      complain: (line: string) => void complaints.push(line),
      elapsed: () => ms,
      isHangupIgnored: () => underNohup,
    },
  };
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("signals", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "the first asks for a clean stop and ends nothing itself: %s",
    async (signal) => {
      const { source, send, exits } = fakeProcess();
      const stopped = stopOnSignals(source);
      send(signal, 0);
      expect(await stopped).toBe(signal);
      expect(exits).toEqual([]);
    },
  );

  test("a process that was started with nohup goes on ignoring a hangup", async () => {
    const { source, send, exits } = fakeProcess({ underNohup: true });
    const stopped = stopOnSignals(source);
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
  ])("whether a hangup is ignored, from %p: %p", (status, isIgnored) => {
    expect(ignoresHangup(status)).toBe(isIgnored);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("a second %s ends the process at once with %d", async (signal, code) => {
    const { source, send, exits } = fakeProcess();
    const stopped = stopOnSignals(source);
    send("SIGINT", 0);
    await stopped;
    send(signal, 1_000);
    expect(exits).toEqual([code]);
  });

  test("the echo that npm makes of a Ctrl-C is no second signal", async () => {
    const { source, send, exits } = fakeProcess();
    const stopped = stopOnSignals(source);
    send("SIGINT", 0);
    send("SIGINT", 20);
    await stopped;
    expect(exits).toEqual([]);
  });

  test("a stop that does not end in time is cut short, within ten seconds and not before nine", async () => {
    const { source, send, exits, complaints } = fakeProcess();
    const stopped = stopOnSignals(source);
    send("SIGTERM", 0);
    await stopped;
    jest.advanceTimersByTime(9_000);
    expect(exits).toEqual([]);
    jest.advanceTimersByTime(999);
    expect(exits).toEqual([1]);
    expect(complaints).toEqual(["what was under way did not end in time; stopping without it"]);
  });
});
