import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./cleanup.ts";

/** Makes every sync of a process take longer, as a slower disk does. Other processes are as fast as before. */
const SOURCE = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slowly(const char *name, int descriptor) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = sync(descriptor);
  const char *micros = getenv("SYNC_DELAY_MICROS");
  if (micros) usleep(atoi(micros));
  return result;
}

int fsync(int descriptor) { return slowly("fsync", descriptor); }
int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }
`;

export type SlowSync = (delayMs: number) => Readonly<Record<string, string>>;

/**
 * Compiles it. Returns the variables for the environment of a process whose syncs take longer, or the reason why that
 * cannot be had here.
 */
export function compileSlowSync(): SlowSync | string {
  const compiler = Bun.which("cc") ?? Bun.which("gcc") ?? Bun.which("clang");
  if (compiler === null) return "there is no C compiler (package gcc), which makes syncs take longer";
  const directory = temporaryDirectory("slow-sync");
  const [source, library] = [join(directory, "slow-sync.c"), join(directory, "slow-sync.so")];
  writeFileSync(source, SOURCE);
  const { success, stderr } = Bun.spawnSync([
    compiler,
    "-shared",
    "-fPIC",
    "-O2",
    "-o",
    library,
    source,
    "-ldl",
  ]);
  if (!success)
    return `what makes syncs take longer cannot be compiled: ${stderr.toString().trim().split("\n")[0]}`;
  return (delayMs) => ({ LD_PRELOAD: library, SYNC_DELAY_MICROS: String(delayMs * 1_000) });
}
