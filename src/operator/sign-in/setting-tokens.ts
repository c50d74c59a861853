import { Rejection } from "../../api/errors.ts";
import type { AdminConfig } from "../../config/config.ts";
import { followFiles } from "../../config/follow-files.ts";
import { readFromFile } from "../../config/parse-options.ts";
import { adminToken } from "../../config/value-types.ts";
import type { NewOperator } from "../../domain/operators.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { repeat } from "../../runtime/repeat.ts";
import { byServer } from "../../background/attribution.ts";
import type { Log } from "../../observe/log.ts";
import { toNewToken } from "./token.ts";

/** How often a file is checked. A new token in a file works within a second. */
const EVERY_MS = 250;
const RETRY_MS = 1_000;

/** The tokens in files of settings. */
export const TOKEN_FILES = {
  bootstrap: { type: adminToken, fileOption: "admin-token-file" },
  metrics: { type: adminToken, fileOption: "metrics-token-file" },
} as const;

/** An operator whose token a deployment generated before its first start. */
interface SettingToken extends NewOperator {
  readonly name: keyof typeof TOKEN_FILES;
  /** The file of the token, which is read again when it changes. */
  readonly file: string | undefined;
  /** The token if there is no file. */
  readonly token?: string | undefined;
}

function settingTokensOf({ token, tokenFile, metricsTokenFile }: AdminConfig): readonly SettingToken[] {
  return [
    { name: "bootstrap", role: "admin", file: tokenFile, token },
    { name: "metrics", role: "metrics", file: metricsTokenFile },
  ];
}

interface ImportOptions {
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
}

/** Begins to follow the files. Returns a function that stops it. */
export type FollowTokens = () => () => Promise<void>;

/**
 * Stores the tokens in settings as those of their operators. Servers with the same token change nothing. If servers
 * have different tokens, the token that is read last replaces the others for good: a replaced token is never accepted
 * again, so the servers do not replace their tokens in turn. Throws if a file is unusable.
 */
export async function importTokens(admin: AdminConfig, options: ImportOptions): Promise<FollowTokens> {
  const importers = settingTokensOf(admin).map((setting) => new TokenImporter(setting, options));
  for (const importer of importers) await importer.start();
  return () => {
    const stops = importers.map((importer) => importer.follow());
    return async () => void (await Promise.all(stops.map((stop) => stop())));
  };
}

class TokenImporter {
  /** The token that is to be stored. */
  #next: string | undefined;
  #isFailing = false;

  constructor(
    private readonly setting: SettingToken,
    private readonly options: ImportOptions,
  ) {}

  async start(): Promise<void> {
    const { name, file, token } = this.setting;
    this.#next = file === undefined ? token : readFromFile(TOKEN_FILES[name], file);
    await this.#store();
  }

  follow(): () => Promise<void> {
    const { name, file } = this.setting;
    if (file === undefined && this.#next === undefined) return async () => {};
    const storing = repeat(this.#isFailing ? RETRY_MS : EVERY_MS, () => this.#store());
    if (file === undefined) return () => storing.close();
    const stop = followFiles([file], {
      everyMs: EVERY_MS,
      read: () => readFromFile(TOKEN_FILES[name], file),
      onChange: (token) => (this.#next = token),
      onError: (error) => this.options.log.event("admin.token-unreadable", { file, error }),
    });
    return () => {
      stop();
      return storing.close();
    };
  }

  /** Stores the token. If the database is unavailable, it is tried again. Resolves to the wait until the next run. */
  async #store(): Promise<number> {
    const token = this.#next;
    if (token === undefined) return EVERY_MS;
    const { name, role } = this.setting;
    const { operators, clock, log } = this.options;
    try {
      const imported = await operators.importOperator({ name, role }, toNewToken(token), byServer(clock));
      if (imported instanceof Rejection)
        log.event("admin.token-rejected", { operator: name, reason: imported.message });
      else if (imported) log.event("admin.token-imported", { operator: name });
      this.#isFailing = false;
      if (this.#next === token) this.#next = undefined;
      return EVERY_MS;
    } catch (error) {
      if (!this.#isFailing) log.event("admin.token-not-imported", { operator: name, error });
      this.#isFailing = true;
      return RETRY_MS;
    }
  }
}
