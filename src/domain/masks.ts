import { SECRET_PREFIX } from "./secrets.ts";

const prefixes = Object.values(SECRET_PREFIX).join("|");

/** A secret of the service, which clients and operators also send in wrong places. The group is its beginning. */
export const SECRET = new RegExp(`(${prefixes})[\\w-]+(?:\\.[\\w-]+)*`, "g");

/** More of a secret than its hint shows. The history of a browser must not contain it. */
export const SECRET_BEYOND_HINT = new RegExp(`(?:${prefixes})[\\w-]{5,}(?:\\.[\\w-]+)*`);

/** Masks the secrets of the service. What remains is the beginning of each. */
export function maskSecrets(text: string): string {
  return text.replace(SECRET, "$1…");
}

/** Matches up to the last @, because a password that is not encoded can contain anything. */
const URL_WITH_USER = /([a-z][a-z\d+.-]*:\/\/)[^]*@/gi;
const PASSWORD_PARAMETER = /([?&](?:\w*password|\w*secret|\w*token|code|sslkey)=)[^&\s]*/gi;

/** Masks the secrets of the service, and users and passwords in URLs. */
export function maskSecretsAndPasswords(text: string): string {
  return maskSecrets(text).replace(URL_WITH_USER, "$1…@").replace(PASSWORD_PARAMETER, "$1…");
}

/** Matches a scheme and what comes before the last @, because a password that is not encoded can contain anything. */
const USER = /^\s*([a-z][a-z\d+.-]*:\/*)?[^]*@/i;

/** Masks what an address may keep secret, whether or not it is a valid URL: its user, query and fragment. */
export function maskUserAndQuery(text: string): string {
  return text.replace(USER, "$1…@").replace(/[?#][^]*/, "…");
}
