import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./cleanup.ts";
import { executable, FAKETIME } from "./programs.ts";

/** The library of faketime. The dynamic linker replaces $LIB. */
const LIBRARY = "/usr/$LIB/faketime/libfaketimeMT.so.1";

/**
 * A wall clock that can be set while processes run. Monotonic clocks, timers and the times of files stay those of the
 * machine, as they do when its clock is set.
 */
export class MachineClock {
  readonly #file = join(temporaryDirectory("clock"), "offset");
  /** The prefix of a command that runs with this clock. */
  readonly under: readonly string[] = [
    "env",
    `LD_PRELOAD=${LIBRARY}`,
    `FAKETIME_TIMESTAMP_FILE=${this.#file}`,
    "FAKETIME_NO_CACHE=1",
    "FAKETIME_DONT_FAKE_MONOTONIC=1",
    "DONT_FAKE_MONOTONIC=1",
    "NO_FAKE_STAT=1",
  ];

  constructor(aheadS = 0) {
    executable(FAKETIME);
    this.set(aheadS);
  }

  /** Sets the clock this many seconds ahead of the machine's clock; a negative number sets it behind. */
  set(aheadS: number): void {
    writeFileSync(`${this.#file}.new`, `${aheadS < 0 ? "" : "+"}${aheadS}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
