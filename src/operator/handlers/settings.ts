import { formatPolicy } from "../../config/policy-options.ts";
import type { Setting } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import { ownState } from "./other-servers.ts";
import type { Services } from "../services.ts";

type SettingServices = Pick<Services, "servers" | "policy" | "shownSettings" | "valuesInEffect">;

export function settingHandlers(services: SettingServices) {
  return {
    async getSettings() {
      const { adminUrl } = await ownState(services.servers);
      const listener = adminUrl ? { "admin-address": new URL(adminUrl).host } : {};
      const values = { ...services.valuesInEffect, ...listener };
      return { items: services.shownSettings.map((setting) => inEffect(setting, values)) };
    },
  } satisfies Partial<AdminHandlers>;

  /**
   * Limits and ban rules are those of the database: somebody may have changed what a flag set. The machine decides the
   * number of connections, and the system a port of 0.
   */
  function inEffect(setting: Setting, values: Readonly<Record<string, string>>): Setting {
    const { name, value: given, source } = setting;
    const stored = formatPolicy(services.policy.current)[name];
    const value = stored ?? values[name] ?? given;
    if (value === given) return setting;
    if (stored !== undefined) return { ...setting, value, source: "database" };
    return { ...setting, value, ...(source !== "default" && given !== null && { given }) };
  }
}
