import type { Options } from "../config/parse-options.ts";
import { adminTokenRotate, adminUrl } from "./admin.ts";
import { audit } from "./audit.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { backup } from "./data/backup.ts";
import { copy } from "./data/copy.ts";
import { exportCommand } from "./data/export.ts";
import { importCommand } from "./data/import.ts";
import { restore } from "./data/restore.ts";
import { demo } from "./demo.ts";
import { doctor } from "./doctor.ts";
import { health } from "./health.ts";
import { KEY_COMMANDS } from "./keys.ts";
import { man } from "./man.ts";
import { openapi } from "./openapi.ts";
import { PET_COMMANDS } from "./pets-and-orders.ts";
import { serve } from "./serve.ts";
import { serversList } from "./servers.ts";
import { usage } from "./usage.ts";

/** In the order of the overview. */
export const COMMANDS: readonly Command[] = [
  serve,
  health,
  demo,
  ...KEY_COMMANDS,
  adminUrl,
  adminTokenRotate,
  ...PET_COMMANDS,
  importCommand,
  exportCommand,
  serversList,
  audit,
  usage,
  backup,
  restore,
  copy,
  doctor,
  openapi,
  completion,
  man,
];

/**
 * Every option. Where commands have a flag in common, it takes a value in all of them or in none, and what the value is
 * may differ: --status is that of a pet or an order.
 */
export const OPTIONS: Options = Object.assign({}, ...COMMANDS.map(({ options }) => options));
