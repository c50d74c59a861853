/* Everything that a server connects to. */

import type { ProviderConfig } from "../config/config.ts";
import type { SETTINGS } from "../config/options.ts";
import type { SettingsWith } from "../config/parse-options.ts";
import type { DataLocation } from "../data-location.ts";
import { type OutgoingRequest, sendRequest, trustProblem } from "../runtime/outgoing-request.ts";
import { checkPostgres } from "./postgres.ts";
import type { StoreFindings } from "./stored-data.ts";
import { check, messageWithoutSecrets } from "./finding.ts";
import { checkProvider } from "./provider.ts";

/** A setting whose value is a URL to which a server connects. */
type Destination = SettingsWith<typeof SETTINGS, { isDestination: true }>;

/** What a server connects to; undefined if it is not set. */
export interface Destinations {
  readonly data: DataLocation;
  readonly provider: ProviderConfig | undefined;
  readonly webhook: { readonly url: string } | undefined;
  readonly tracing: { readonly url: string } | undefined;
}

type Check = (destinations: Destinations, now: () => number) => Promise<StoreFindings>;

const NONE: StoreFindings = { findings: [] };

/** The check of each destination. */
const CHECKS: Readonly<Record<Destination, Check>> = {
  "database-url": ({ data }, now) => checkPostgres(data, now),
  "oidc-issuer": ({ provider }) => checkProvider(provider),
  // A receiver may take only events, so every response below 500 shows that it is there.
  "webhook-url": async ({ webhook }) =>
    webhook === undefined
      ? NONE
      : checkEndpoint(
          {
            check: "webhook",
            setting: "--webhook-url",
            url: webhook.url,
            remedy: "try it with petstore webhook test",
          },
          { method: "HEAD" },
          (status) => status < 500 && !isRedirect(status),
        ),
  // A collector accepts a request without spans.
  "otlp-url": async ({ tracing }) =>
    tracing === undefined
      ? NONE
      : checkEndpoint(
          {
            check: "spans",
            setting: "--otlp-url",
            url: tracing.url,
            remedy: "correct the path: collectors take spans at /v1/traces",
          },
          { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"resourceSpans":[]}' },
          (status) => status >= 200 && status < 300,
        ),
};

/** Checks all destinations at the same time. */
export async function checkDestinations(
  destinations: Destinations,
  now: () => number,
): Promise<StoreFindings> {
  const checked = await Promise.all(Object.values(CHECKS).map((run) => run(destinations, now)));
  return {
    findings: checked.flatMap(({ findings }) => findings),
    clocks: checked.flatMap(({ clocks = [] }) => clocks),
  };
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400;

const BOUNDS = { timeoutMs: 5_000, maxBytes: 16 * 1_024 };

interface Endpoint {
  readonly check: string;
  readonly setting: string;
  readonly url: string;
  /** What to do about a response that is not the expected one. */
  readonly remedy: string;
}

async function checkEndpoint(
  { check: name, setting, url, remedy }: Endpoint,
  request: Pick<OutgoingRequest, "method" | "headers" | "body">,
  isExpected: (status: number) => boolean,
): Promise<StoreFindings> {
  const endpoint = check(name);
  // The path may contain a secret.
  const { origin } = new URL(url);
  try {
    const { status } = await sendRequest(url, { ...request, ...BOUNDS, isEnough: () => true });
    const finding = isExpected(status)
      ? endpoint.ok(`${origin} responds`)
      : endpoint.warning(
          `${origin} responds with ${status}${isRedirect(status) ? ", and no redirect is followed" : ""}`,
          isRedirect(status) ? `set ${setting} to the address that it leads to` : remedy,
        );
    return { findings: [finding] };
  } catch (error) {
    const problem = trustProblem(error);
    const message = `${origin} does not respond: ${problem ?? messageWithoutSecrets(error)}`;
    return {
      findings: [endpoint.warning(message, `check ${setting}, and that this machine may connect to it`)],
    };
  }
}
