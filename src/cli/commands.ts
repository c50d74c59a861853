import type { Options } from "../config/parse-options.ts";
import { adminUrl } from "./admin-url.ts";
import { audit } from "./audit.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { backup } from "./data/backup.ts";
import { copy } from "./data/copy.ts";
import { exportCommand } from "./data/export.ts";
import { importCommand } from "./data/import.ts";
import { migrateCommand } from "./data/migrate.ts";
import { restore } from "./data/restore.ts";
import { demo } from "./demo.ts";
import { apply } from "./declared/apply.ts";
import { exportConfig } from "./declared/export-config.ts";
import { doctor } from "./doctor.ts";
import { health } from "./health.ts";
import { KEY_COMMANDS } from "./keys.ts";
import { login, logout, whoami } from "./login.ts";
import { openapi } from "./openapi.ts";
import { OPERATOR_COMMANDS } from "./operators.ts";
import { PET_AND_ORDER_COMMANDS } from "./pets-and-orders.ts";
import { PLAN_COMMANDS } from "./plans.ts";
import { requests } from "./requests.ts";
import { serve } from "./serve.ts";
import { serversList, settings } from "./servers.ts";
import { usage } from "./usage.ts";
import { webhookShow, webhookTest } from "./webhook.ts";

/** The commands in the groups and the order of the overview. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly Command[]>> = {
  Server: [serve, demo, doctor, health, serversList, settings, requests],
  "API keys": [...KEY_COMMANDS, usage],
  "Plans and bans": PLAN_COMMANDS,
  "Pets and orders": PET_AND_ORDER_COMMANDS,
  Operators: [login, logout, whoami, ...OPERATOR_COMMANDS, adminUrl, audit, webhookShow, webhookTest],
  // A command whose words begin those of another comes after it.
  Data: [apply, exportConfig, importCommand, exportCommand, backup, restore, copy, migrateCommand],
  More: [openapi, completion],
};

export const COMMANDS: readonly Command[] = Object.values(COMMAND_GROUPS).flat();

/**
 * Every option. Where commands have a flag in common, it takes a value in all of them or in none, and what the value is
 * may differ: --status is that of a pet or an order.
 */
export const OPTIONS: Options = Object.assign({}, ...COMMANDS.map(({ options }) => options));
