import { describe, expect, jest, test } from "bun:test";
import { type LineOutput, LineWriter, type LineWriterOptions } from "../../src/observe/access-log.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";

const NEVER_MS = 3_600_000;

/** An output that takes what `accept` lets it take. */
class TestOutput implements LineOutput {
  text = "";
  isClosed = false;
  rotations = 0;
  accept: (bytes: Uint8Array) => number | Promise<number> = ({ length }) => length;
  readonly #changes: (() => void)[] = [];

  async write(bytes: Uint8Array): Promise<number> {
    const count = await this.accept(bytes);
    this.text += Buffer.from(bytes.subarray(0, count)).toString();
    for (const notify of this.#changes.splice(0)) notify();
    return count;
  }

  async followRotation(): Promise<void> {
    this.rotations++;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  async until(isTrue: (text: string) => boolean): Promise<void> {
    while (!isTrue(this.text)) await new Promise<void>((resolve) => this.#changes.push(resolve));
  }
}

function setUp(options: Partial<LineWriterOptions> = {}) {
  const output = new TestOutput();
  const events: unknown[] = [];
  const log = {
    event(name: string, { error, lines }: { error?: unknown; lines?: number } = {}) {
      events.push([name.replace("access-log.", ""), ...(error ? [error] : []), ...(lines ? [lines] : [])]);
    },
  };
  const writer = new LineWriter({ file: "-", output, log, writeEveryMs: NEVER_MS, ...options });
  return { output, events, writer };
}

function noSpace(): never {
  throw new Error("no space");
}

describe("lines", () => {
  test("are written in order, after a time, after 64 KiB, and when the writer closes", async () => {
    const timed = setUp({ writeEveryMs: 5 });
    timed.writer.write("a\n");
    timed.writer.write("é\n");
    await timed.output.until((text) => text === "a\né\n");
    expect(timed.output.rotations).toBeGreaterThan(0);
    await timed.writer.close();

    const { writer, output, events } = setUp();
    const line = `${"x".repeat(1023)}\n`;
    for (let i = 0; i < 64; i++) writer.write(line);
    await output.until((text) => text.length === 65_536);
    writer.write("last\n");
    await writer.close();
    expect(output.text).toBe(`${line.repeat(64)}last\n`);
    expect([output.isClosed, events]).toEqual([true, []]);
  });

  test("are completed when the output takes them in parts", async () => {
    const { writer, output } = setUp();
    output.accept = ({ length }) => Math.min(length, 3);
    writer.write("one line\n");
    writer.write("another\n");
    await writer.close();
    expect(output.text).toBe("one line\nanother\n");
  });

  test("are written once when the output fails in the middle of one, and the failure is reported once", async () => {
    const { writer, output, events } = setUp({ writeEveryMs: 1 });
    const tried = Promise.withResolvers<void>();
    let calls = 0;
    output.accept = () => {
      if (++calls === 5) tried.resolve();
      return calls === 1 ? 4 : noSpace();
    };
    writer.write("one line\n");
    await tried.promise;
    writer.write("another\n");
    output.accept = ({ length }) => length;
    await output.until((text) => text.endsWith("another\n"));
    await writer.close();
    expect(output.text).toBe("one line\nanother\n");
    expect(events).toEqual([["failed", new Error("no space")], ["recovered"]]);
  });

  test("are dropped and counted beyond 4 MiB", async () => {
    const { writer, output, events } = setUp();
    const taken = Promise.withResolvers<number>();
    output.accept = () => taken.promise;
    const line = `${"x".repeat(1023)}\n`;
    // The first 64 are being written.
    for (let i = 0; i < 64 + 4096 + 7; i++) writer.write(line);
    expect(events).toEqual([]);
    output.accept = ({ length }) => length;
    taken.resolve(65_536);
    await writer.close();
    expect(events).toEqual([["lines-dropped", 7]]);
    expect(output.text).toHaveLength(4160 * 1024);
  });
});

describe("an output that never takes a line", () => {
  useFakeTimers();

  const neverTakes = async (options: Partial<LineWriterOptions>) => {
    const { writer, output, events } = setUp(options);
    output.accept = () => new Promise<number>(() => {});
    writer.write("a\n");
    await advance(500);
    const close = async () => {
      const closed = writer.close();
      jest.advanceTimersByTime(1_000);
      await closed;
    };
    return { writer, output, events, close };
  };

  test("the lines that are dropped are reported at most once a minute, and the rest at the end", async () => {
    const { writer, events, close } = await neverTakes({ maxWaiting: 2, writeEveryMs: 500 });
    for (const line of ["b\n", "c\n", "d\n"]) writer.write(line);
    jest.advanceTimersByTime(500);
    expect(events).toEqual([["lines-dropped", 2]]);
    for (const line of ["e\n", "f\n", "g\n"]) writer.write(line);
    jest.advanceTimersByTime(59_500);
    expect(events).toEqual([["lines-dropped", 2]]);
    jest.advanceTimersByTime(500);
    expect(events.slice(1)).toEqual([["lines-dropped", 3]]);
    writer.write("h\n");
    await close();
    expect(events.slice(2)).toEqual([["lines-dropped", 1]]);
  });

  test("delays the end by a second only", async () => {
    const { output, close } = await neverTakes({});
    await close();
    expect(output.isClosed).toBe(true);
  });
});
