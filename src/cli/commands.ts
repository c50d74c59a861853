import type { Command } from "./command.ts";

/**
 * In the order of the overview. A command is imported when it is used: `serve` starts sooner without the code of the
 * others.
 */
const LOADERS = {
  serve: async () => (await import("./serve.ts")).serve,
  health: async () => (await import("./health.ts")).health,
  demo: async () => (await import("./demo.ts")).demo,
  "keys create": async () => (await import("./keys/keys-create.ts")).keysCreate,
  "keys list": async () => (await import("./keys/keys-list.ts")).keysList,
  "keys show": async () => (await import("./keys/keys-show.ts")).keysShow,
  "keys find": async () => (await import("./keys/keys-find.ts")).keysFind,
  "keys update": async () => (await import("./keys/keys-update.ts")).keysUpdate,
  "keys set-plan": async () => (await import("./keys/keys-set-plan.ts")).keysSetPlan,
  "keys roll": async () => (await import("./keys/keys-roll.ts")).keysRoll,
  "keys revoke": async () => (await import("./keys/keys-revoke.ts")).keysRevoke,
  "keys unban": async () => (await import("./keys/keys-unban.ts")).keysUnban,
  "admin-url": async () => (await import("./admin-url.ts")).adminUrl,
  "admin-token roll": async () => (await import("./admin-token-roll.ts")).adminTokenRoll,
  "pets list": async () => (await import("./pets-and-orders/pets-list.ts")).petsList,
  "pets show": async () => (await import("./pets-and-orders/pets-show.ts")).petsShow,
  "pets update": async () => (await import("./pets-and-orders/pets-update.ts")).petsUpdate,
  "pets delete": async () => (await import("./pets-and-orders/pets-delete.ts")).petsDelete,
  "orders list": async () => (await import("./pets-and-orders/orders-list.ts")).ordersList,
  "orders show": async () => (await import("./pets-and-orders/orders-show.ts")).ordersShow,
  "orders update": async () => (await import("./pets-and-orders/orders-update.ts")).ordersUpdate,
  import: async () => (await import("./data/import.ts")).importCommand,
  export: async () => (await import("./data/export.ts")).exportCommand,
  audit: async () => (await import("./audit.ts")).audit,
  usage: async () => (await import("./usage.ts")).usage,
  backup: async () => (await import("./data/backup.ts")).backup,
  restore: async () => (await import("./data/restore.ts")).restore,
  copy: async () => (await import("./data/copy.ts")).copy,
  doctor: async () => (await import("./doctor.ts")).doctor,
  openapi: async () => (await import("./openapi.ts")).openapi,
  completion: async () => (await import("./completion/completion.ts")).completion,
  man: async () => (await import("./man.ts")).man,
} satisfies Readonly<Record<string, () => Promise<Command>>>;

export type CommandName = keyof typeof LOADERS;

export const COMMAND_NAMES = Object.keys(LOADERS) as CommandName[];

export function loadCommand(name: CommandName): Promise<Command> {
  return LOADERS[name]();
}

export function loadCommands(): Promise<Command[]> {
  return Promise.all(COMMAND_NAMES.map(loadCommand));
}
