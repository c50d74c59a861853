import type { Options } from "../config/parse-options.ts";
import { adminUrl } from "./commands/admin-url.ts";
import { audit } from "./commands/audit.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { backup } from "./commands/data/backup.ts";
import { exportCommand } from "./commands/data/export.ts";
import { importCommand } from "./commands/data/import.ts";
import { migrateCommand } from "./commands/data/migrate.ts";
import { restore } from "./commands/data/restore.ts";
import { demo } from "./commands/demo.ts";
import { apply } from "./commands/declared/apply.ts";
import { exportConfig } from "./commands/declared/export-config.ts";
import { doctor } from "./commands/doctor.ts";
import { health } from "./commands/health.ts";
import { KEY_COMMANDS } from "./commands/keys.ts";
import { login, logout, whoami } from "./commands/login.ts";
import { openapi } from "./commands/openapi.ts";
import { OPERATOR_COMMANDS } from "./commands/operators.ts";
import { PET_AND_ORDER_COMMANDS } from "./commands/pets-and-orders.ts";
import { PLAN_COMMANDS } from "./commands/plans.ts";
import { requests } from "./commands/requests.ts";
import { serve } from "./commands/serve.ts";
import { serversList, settings } from "./commands/servers.ts";
import { usage } from "./commands/usage.ts";
import { webhookShow, webhookTest } from "./commands/webhook.ts";

/** The commands in the groups and the order of the overview. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly Command[]>> = {
  Server: [serve, demo, doctor, health, serversList, settings, requests],
  "API keys": [...KEY_COMMANDS, usage],
  "Plans and bans": PLAN_COMMANDS,
  "Pets and orders": PET_AND_ORDER_COMMANDS,
  Operators: [login, logout, whoami, ...OPERATOR_COMMANDS, adminUrl, audit, webhookShow, webhookTest],
  // A command whose words begin those of another comes after it.
  Data: [apply, exportConfig, importCommand, exportCommand, backup, restore, migrateCommand],
  More: [openapi, completion],
};

export const COMMANDS: readonly Command[] = Object.values(COMMAND_GROUPS).flat();

/**
 * Every option. Where commands have a flag in common, it takes a value in all of them or in none, and what the value is
 * may differ: --status is that of a pet or an order.
 */
export const OPTIONS: Options = Object.assign({}, ...COMMANDS.map(({ options }) => options));
