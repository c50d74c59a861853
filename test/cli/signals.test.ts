import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { stopOnSignals, type StopSignal } from "../../src/cli/terminal.ts";

/** A process that records how it exits, while signals stop it. */
function stoppable({ drainDelayMs = 0, status = "" } = {}) {
  const exits: (string | number | null | undefined)[] = [];
  const errors: unknown[] = [];
  let ms = 0;
  const listeners = new Map<StopSignal, (signal: StopSignal) => void>();
  spyOn(performance, "now").mockImplementation(() => ms);
  spyOn(process, "exit").mockImplementation((code) => exits.push(code) as never);
  spyOn(process.stderr, "write").mockImplementation((line) => errors.push(line) > 0);
  const on = (signal: StopSignal, listener: (signal: StopSignal) => void) => listeners.set(signal, listener);
  spyOn(process, "on").mockImplementation(on as never);
  const stopped = stopOnSignals(drainDelayMs, status);
  const send = (signal: StopSignal, afterMs = 0) => {
    ms += afterMs;
    listeners.get(signal)?.(signal);
  };
  return { stopped, send, exits, errors };
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

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

test.each([
  ["Name:\tbun\nSigBlk:\t0000000000000001\nSigIgn:\t0000000001001000\n", "SIGHUP"],
  ["Name:\tbun\nSigIgn:\t0000000001001001\nSigCgt:\t0000000000000000\n", "SIGTERM"],
  ["SigIgn:\t000000000000000e\n", "SIGHUP"],
  ["SigIgn:\t000000000000000f\n", "SIGTERM"],
])("a process started with nohup keeps ignoring SIGHUP: %p stops on %s", async (status, first) => {
  const { stopped, send } = stoppable({ status });
  send("SIGHUP");
  send("SIGTERM");
  expect<string>(await stopped).toBe(first);
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
    expect(errors).toEqual([
      "petstore: requests in progress did not finish in time; stopping without them\n",
    ]);
    send("SIGTERM", 1_000);
    expect(exits).toEqual([1, 143]);
  },
);
