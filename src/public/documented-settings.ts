import type { Environment } from "../domain/environments.ts";
import type { PolicyInEffect } from "../domain/policy.ts";

/** The settings of a server that its documentation states. */
export interface DocumentedSettings {
  /** The environment of the server that shows the documentation: examples use its URL and its keys. */
  readonly environment: Environment;
  /** The URL of the API, with the base path and without a slash at its end. */
  readonly baseUrl: string;
  /** The base URL of the other environment, if the operator has set it. */
  readonly otherEnvironmentUrl?: string | undefined;
  readonly policy: PolicyInEffect;
  /** 0 means any number. */
  readonly maxConnectionsPerAddress: number;
  /** The time, by which the documentation says that an operation was removed; before any removal by default. */
  readonly now?: () => number;
}

/** Whether the documentation says that an operation with this time of removal was removed. */
export function isPast(time: Date, { now = () => 0 }: Pick<DocumentedSettings, "now">): boolean {
  return now() >= time.getTime();
}
