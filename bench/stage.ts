import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathsOf } from "../src/config/config.ts";
import { generateSecret } from "../src/domain/api-keys.ts";
import { chooseCores, type Cores } from "./machine.ts";
import { Processes } from "./processes.ts";
import type { Replies } from "./replies.ts";
import type { Keys } from "./requests.ts";
import { copyDatabase, seededDatabase } from "./seed.ts";

/** Where a run takes place: its folder, its cores, and whatever it has started. */
export interface Stage {
  readonly folder: string;
  readonly cores: Cores | undefined;
  readonly processes: Processes;
}

/** Petstore's data with so many animals in it, and keys that open it. */
export interface Data {
  readonly folder: string;
  readonly database: string;
  readonly animals: number;
  readonly keys: Keys;
}

/** What a contestant needs to be started. */
export interface Setting {
  readonly stage: Stage;
  readonly data: Data;
  /** What the limits repeat; known once Petstore has answered. */
  readonly replies: Replies;
}

export const PROJECT = join(import.meta.dir, "..");
/** The program as `npm start` runs it. */
export const PETSTORE = [process.execPath, join(PROJECT, "src/cli/main.ts")];

export function openStage(): Stage {
  const folder = mkdtempSync(join(tmpdir(), "petstore-bench-run-"));
  return { folder, cores: chooseCores(), processes: new Processes(folder) };
}

export function clearStage({ folder, processes }: Stage): void {
  processes.killAll();
  rmSync(folder, { recursive: true, force: true });
}

const BOUNDLESS = 1_000_000_000;

export async function prepareData(stage: Stage, animals: number): Promise<Data> {
  const folder = join(stage.folder, `data-${animals}`);
  mkdirSync(folder);
  const database = pathsOf({ environment: "production", dataDir: folder }).store;
  copyDatabase(await seededDatabase(animals, stage), database);
  const keys = {
    open: makeKey(folder, BOUNDLESS),
    spent: makeKey(folder, 1),
    unknown: generateSecret("production"),
  };
  return { folder, database, animals, keys };
}

function makeKey(folder: string, requests: number): string {
  const limits = ["--per-minute", String(requests), "--per-day", String(requests)];
  const about = ["--name", `bench ${requests}`, "--plan", "enterprise", ...limits];
  const { stdout, stderr } = Bun.spawnSync([
    ...PETSTORE,
    "keys",
    "create",
    ...about,
    "--data",
    folder,
    "--json",
  ]);
  const made: unknown = JSON.parse(stdout.toString() || "null");
  if (typeof made === "object" && made !== null && "key" in made && typeof made.key === "string")
    return made.key;
  throw new Error(`no key could be made: ${stderr.toString().trim()}`);
}

export function serveArguments(data: Data, port: number): string[] {
  // Callers without a key are refused by their own limit as a rule; here their 401 is what is measured.
  const anonymous = ["--anonymous-limits", `${BOUNDLESS}/${BOUNDLESS}`];
  return ["serve", "--port", String(port), "--data", data.folder, ...anonymous];
}
