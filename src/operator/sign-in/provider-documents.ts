/* What is read of the documents of a provider. The library gets only what these schemas have read. */

import { array, boolean, Invalid, line, matching, object, type Schema } from "../../api/schema.ts";
import type { Claims } from "../../domain/role-rules.ts";
import { OutgoingError } from "../../runtime/outgoing-request.ts";

const url = line(2_000);
const names = array(line(200));

/** The discovery document (OpenID Connect Discovery 1.0, section 3), as far as it is used. */
const Metadata = object(
  {},
  { issuer: url, authorization_endpoint: url, token_endpoint: url, jwks_uri: url },
  {
    userinfo_endpoint: url,
    scopes_supported: names,
    token_endpoint_auth_methods_supported: names,
    id_token_signing_alg_values_supported: names,
    authorization_response_iss_parameter_supported: boolean(),
  },
);

/** A key for signatures (RFC 7517), with the members of each kind. */
const Key = object(
  {},
  { kty: line(20) },
  {
    use: line(20),
    key_ops: names,
    alg: line(20),
    kid: line(1_000),
    n: line(10_000),
    e: line(100),
    crv: line(20),
    x: line(1_000),
    y: line(1_000),
  },
);
const anything: Schema<unknown> = { kind: "other", json: {}, expected: "a value", read: (value) => value };
const Keys = object({ keys: array(anything) });

/** Parses a document. Throws OutgoingError for one that is no JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OutgoingError("invalid", "it is no JSON");
  }
}

/** Reads the discovery document. The URLs in it have TLS, unless the issuer has `protocol`. */
export function readMetadata(document: unknown, protocol: string) {
  const metadata = read(Metadata, document);
  for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] as const) {
    const endpoint = metadata[name];
    if (endpoint === undefined) continue;
    const scheme = URL.parse(endpoint)?.protocol;
    if (scheme !== "https:" && scheme !== protocol)
      throw new OutgoingError("invalid", `${name} is no https:// URL`);
  }
  return metadata;
}

/** The keys of a provider. Those that cannot be read are ignored (RFC 7517, section 5). */
export function readKeys(document: unknown) {
  const { keys } = read(Keys, document);
  return { keys: keys.map((key) => Key.read(key)).filter((key) => !(key instanceof Invalid)) };
}

function read<T>(schema: Schema<T>, document: unknown): T {
  const value = schema.read(document);
  if (!(value instanceof Invalid)) return value;
  const [{ path = [], message = "" } = {}] = value.problems;
  throw new OutgoingError("invalid", `\`${path.join(".")}\` ${message}`);
}

/** Letters of other scripts can become ASCII in lower case, as the Kelvin sign becomes k. */
const Address = object({ email: matching(/^[!-~]{1,254}$/, "an email address of ASCII characters") });

/** The claims that say whether an address was verified: the second one of Microsoft, by the owner of the domain. */
const VERIFIED = ["email_verified", "xms_edov"];
/** The values by which they say it. */
const TRUE = new Set<unknown>([true, 1, "true", "1"]);

/** Returns the first address that the same document says is verified, in lower case. */
export function verifiedAddress(documents: readonly Claims[]): string | undefined {
  for (const document of documents) {
    const address = Address.read(document);
    if (address instanceof Invalid) continue;
    if (VERIFIED.some((claim) => Object.hasOwn(document, claim) && TRUE.has(document[claim])))
      return address.email.toLowerCase();
  }
  return undefined;
}
