import { resolve } from "node:path";
import type { AdminConfig } from "../../config/config.ts";
import { type FollowTokens, importTokens } from "./setting-tokens.ts";
import { openFirstToken, type OpenFirstTokenOptions } from "./token.ts";

/** The credentials in the database and the data directory. */
export interface AdminCredentials {
  readonly followTokens: FollowTokens;
  /** The file of a token; undefined if the token is in a variable, or only operators have theirs. */
  readonly tokenFile: string | undefined;
}

/** Stores the tokens in settings. Without a token of an admin there, it opens the one in the data directory. */
export async function openAdminCredentials(
  admin: AdminConfig,
  options: OpenFirstTokenOptions,
): Promise<AdminCredentials> {
  const followTokens = await importTokens(admin, options);
  const tokenFile =
    admin.token === undefined ? await openFirstToken(options) : admin.tokenFile && resolve(admin.tokenFile);
  return { followTokens, tokenFile };
}
