import { appendFileSync, rmSync } from "node:fs";
import { chargedFolder } from "../../test/engines/charges.ts";
import { Fleet } from "../../test/instances/fleet.ts";
import { backWithin, onlyErrors, refusalsSayWhen, waitsAtMost, WHATEVER_HAPPENS } from "../expectations.ts";
import type { Ground, Scenario } from "../scenario.ts";

interface SmallDisk extends Ground {
  /** A file that takes what room there is. */
  readonly filler: string;
}

const SIZE = "24m";
const CHUNK = new Uint8Array(4_096);

/**
 * A server on SQLite, on a disk of its own in memory. The disk is mounted where only that process can see it, and is
 * gone when it ends, however it ends.
 */
async function onSmallDisk(): Promise<SmallDisk> {
  const path = chargedFolder("disk");
  const mount = `mount -t tmpfs -o size=${SIZE} tmpfs "$0" && exec "$@"`;
  const fleet = await Fleet.start({
    size: 1,
    place: ["--data", path],
    // Commands on keys would not see the disk, so the load takes the first key.
    flags: ["--free-limits", "1000000/100000000"],
    under: ["unshare", "--mount", "sh", "-c", mount, path],
  });
  return {
    fleet,
    key: fleet.members[0]?.key ?? "",
    filler: `/proc/${fleet.members[0]?.pid}/root${path}/filler`,
    stop: () => fleet.stop(),
  };
}

function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, CHUNK);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  }
}

export const DISK: readonly Scenario<SmallDisk>[] = [
  {
    name: "disk-full",
    title: "SQLite's disk full for 4 s",
    unfit: () =>
      process.getuid?.() === 0 && Bun.which("unshare") ? undefined : "only root can make a small disk",
    prepare: onSmallDisk,
    begin: async ({ filler }) => fill(filler),
    lastsMs: 4_000,
    end: async ({ filler }) => rmSync(filler),
    expectations: [
      ...WHATEVER_HAPPENS,
      onlyErrors("503 unavailable"),
      refusalsSayWhen,
      waitsAtMost(50),
      backWithin(1_000),
    ],
  },
];
