/* The types of the settings for the sign-in with a provider (OpenID Connect). */

import { type RoleRule, SIGN_IN_ROLES } from "../domain/role-rules.ts";
import { collectorUrl } from "./address-types.ts";
import { isLoopback } from "../runtime/ip-network.ts";
import { alternatives } from "../text/formatting.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import { type ValueType } from "./value-types.ts";

/** What follows the issuer in the URL of its discovery document. */
const DOCUMENT = /\/?\.well-known\/openid-configuration$/;

/** Tokens and claims of a provider travel in plain text without TLS, so only one on this machine may do without. */
export const issuerUrl: ValueType<string> = {
  placeholder: "URL",
  isUrl: true,
  expected:
    "the https:// URL of the issuer, without user, query and fragment, such as https://login.example.com (http:// on this machine only)",
  parse(text) {
    const url = collectorUrl.parse(text) === undefined ? null : URL.parse(text);
    if (url === null || DOCUMENT.test(text)) return undefined;
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    // The text itself: a provider compares its issuer by character.
    return url.protocol === "https:" || isLoopback(host) ? text : undefined;
  },
  hint: (text) => {
    const near = text.replace(DOCUMENT, "");
    return near === text ? undefined : didYouMean(near);
  },
};

export const clientId: ValueType<string> = {
  placeholder: "ID",
  expected: "1 to 255 visible ASCII characters",
  parse: (text) => (/^[!-~]{1,255}$/.test(text) ? text : undefined),
};

export const clientSecret: ValueType<string> = {
  placeholder: "SECRET",
  secret: true,
  expected: "1 to 1,000 visible ASCII characters",
  parse: (text) => (/^[!-~]{1,1000}$/.test(text) ? text : undefined),
};

const RULE = /^(?<claim>[^=\s]{1,200})=(?<value>\S|\S.{0,498}\S):(?<role>\w+)$/;
/** Values may contain commas, as names in a directory do. So a comma separates rules after a role only. */
const BETWEEN_RULES = new RegExp(String.raw`(?<=:(?:${SIGN_IN_ROLES.join("|")})),\s*`);

function parseRule(text: string): RoleRule | undefined {
  const { claim = "", value = "", role: name } = RULE.exec(text)?.groups ?? {};
  const role = SIGN_IN_ROLES.find((each) => each === name);
  return role && { claim, value, role };
}

/** The flag is repeated, or the rules are separated by commas. */
export const roleRules: ValueType<readonly RoleRule[]> = {
  placeholder: "CLAIM=VALUE:ROLE…",
  expected: `a claim, a value and a role (${alternatives(SIGN_IN_ROLES)}) such as groups=petstore-admins:admin, or several separated by commas`,
  range: `ROLE is ${alternatives(SIGN_IN_ROLES)}`,
  parse(text) {
    const texts = text.split(BETWEEN_RULES);
    const rules = texts.flatMap((each) => parseRule(each.trim()) ?? []);
    return rules.length === texts.length ? rules : undefined;
  },
  format: (rules) => rules.map(({ claim, value, role }) => `${claim}=${value}:${role}`).join(", "),
  hint: (text) => {
    const [, start, role] = /^(.*:)(\w+)$/.exec(text) ?? [];
    const near = role && nearest(role, SIGN_IN_ROLES);
    return near && near !== role ? didYouMean(`${start}${near}`) : undefined;
  },
};
