import { DEFAULT_URL } from "../config/listen-urls.ts";
import { SETTINGS } from "../config/options.ts";
import { DEFAULT_POLICY } from "../domain/policy.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";

/** What the documentation of a server states if nothing is set. */
export const DOCUMENTED_DEFAULTS: DocumentedSettings = {
  environment: "production",
  baseUrl: DEFAULT_URL.production,
  policy: { current: DEFAULT_POLICY },
  maxConnectionsPerAddress: SETTINGS["max-connections-per-address"].default,
};
