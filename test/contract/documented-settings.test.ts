import { expect, test } from "bun:test";
import { SETTINGS } from "../../src/config/options.ts";
import type { SettingRow, SettingsWith } from "../../src/config/parse-options.ts";
import { settingBlocks } from "../../src/docs-site/guide-pages.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { openApiJson } from "../../src/petstore/openapi/document.ts";
import { parseConfig } from "../config/parsing.ts";

/* What the documentation states follows from the settings that concern clients, and from no others. */

type ServiceSetting = Exclude<keyof typeof SETTINGS, SettingsWith<typeof SETTINGS, { concerns: "machine" }>>;

/** A value other than the default. */
const OTHER_VALUES: Readonly<Record<ServiceSetting, string>> = {
  "public-url": "https://pets.example/v1",
  "metrics-public": "true",
  "audit-retention": "forever",
  "oidc-issuer": "https://login.example",
  "oidc-client-id": "petstore",
  "oidc-role": "groups=pets:admin",
  "webhook-url": "https://hooks.example/pets",
  "webhook-events": "*",
  "other-environment-url": "https://staging.example/v1",
  "trust-proxy": "10.0.0.0/8",
  "cors-origin": "https://app.example",
  "max-connections-per-address": "77",
  "drain-delay": "7s",
  "access-log-omit": "address",
  "otlp-sample": "0.7",
};

/** The texts of the guides and the OpenAPI document of a server with a setting. */
function documentation(setting?: ServiceSetting): string {
  const config = parseConfig(setting && { [setting]: [OTHER_VALUES[setting]] });
  const { environment } = config.data;
  const policy = { current: DEFAULT_POLICY };
  const baseUrl = config.publicUrl ?? "http://127.0.0.1:8080/v1";
  const settings = { ...config, environment, baseUrl, policy };
  return JSON.stringify(settingBlocks(settings)) + openApiJson(settings);
}

const rows: Readonly<Record<string, SettingRow>> = SETTINGS;
const byDefault = documentation();

test.each(Object.keys(OTHER_VALUES) as ServiceSetting[])(
  "the documentation states --%s if it concerns clients",
  (setting) => {
    const isStated = documentation(setting) !== byDefault;
    expect<object>({ concerns: isStated ? "clients" : "service" }).toEqual({
      concerns: rows[setting]?.concerns,
    });
  },
);
