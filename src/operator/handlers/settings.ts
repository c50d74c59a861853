import type { Setting } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import { ownState } from "./other-servers.ts";
import type { Services } from "../services.ts";

type SettingServices = Pick<Services, "servers" | "shownSettings" | "valuesInEffect">;

export function settingHandlers(services: SettingServices) {
  return {
    async getSettings() {
      const { adminUrl } = await ownState(services.servers);
      const listener = adminUrl ? { "admin-address": new URL(adminUrl).host } : {};
      const values = { ...services.valuesInEffect, ...listener };
      return { items: services.shownSettings.map((setting) => inEffect(setting, values)) };
    },
  } satisfies Partial<AdminHandlers>;
}

/** The machine decides the number of connections, and the system a port of 0. */
function inEffect(setting: Setting, values: Readonly<Record<string, string>>): Setting {
  const { name, value: given, source } = setting;
  const value = values[name] ?? given;
  if (value === given) return setting;
  return { ...setting, value, ...(source !== "default" && given !== null && { given }) };
}
