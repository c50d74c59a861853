import { errorTable, Rejection, retryAfterText, temporarilyUnavailable } from "../api/errors.ts";
import { kibibytes } from "../text/formatting.ts";
import { MAX_OPERATORS, type NewOperator, type Role } from "../domain/operators.ts";
import { MAX_ADMIN_BODY_BYTES, MAX_OPEN_BODY_BYTES } from "../domain/size-limits.ts";

export const ADMIN_ERRORS = errorTable({
  not_signed_in: { status: 401, meaning: "The request has neither a session nor a token." },
  invalid_token: {
    status: 401,
    meaning: "The token is wrong, was replaced or has expired, or its operator is revoked.",
  },
  invalid_code: {
    status: 401,
    meaning:
      "The code is wrong, was used, is older than five minutes, or is for a command and not for a browser.",
  },
  rejected_sign_in: {
    status: 401,
    meaning: "The provider did not sign anybody in on this page, or its response was used or is too old.",
  },
  sign_in_not_allowed: {
    status: 403,
    meaning: "The provider has authenticated the person, who may not sign in. The message says why.",
  },
  forbidden_role: { status: 403, meaning: "The role of the operator does not allow it." },
  replaced_token: {
    status: 403,
    meaning: "The token, or the one that made the session, was replaced: it changes no credentials.",
  },
  forbidden_host: {
    status: 403,
    meaning: "`Host` is neither an IP address, `localhost` nor a name in `--admin-hostname`.",
  },
  forbidden_origin: { status: 403, meaning: "The request comes from a page of another origin." },
  operator_not_found: { status: 404, meaning: "No operator has this identifier." },
  key_not_found: { status: 404, meaning: "No API key has this identifier or secret." },
  pet_not_found: { status: 404, meaning: "No pet has this identifier." },
  order_not_found: { status: 404, meaning: "No order has this identifier." },
  operator_exists: { status: 409, meaning: "An operator has this name." },
  operator_not_active: { status: 409, meaning: "The operator is revoked or has expired." },
  operator_of_provider: {
    status: 409,
    meaning: "The operator signs in with a provider, which grants no such role or expiry, and no token.",
  },
  own_operator: { status: 409, meaning: "Operators cannot revoke themselves." },
  last_admin: { status: 409, meaning: "No other admin has a token that does not expire." },
  too_many_operators: {
    status: 409,
    meaning: `There are ${MAX_OPERATORS} active operators, which is the limit.`,
  },
  key_not_active: { status: 409, meaning: "The API key is revoked or expired, so it cannot be changed." },
  pet_ordered: { status: 409, meaning: "The pet has a placed order. Complete or cancel the order first." },
  pet_has_orders: { status: 409, meaning: "The pet has orders, so it cannot be deleted." },
  no_provider: {
    status: 409,
    meaning: "The server has no provider, or the operator does not sign in with it.",
  },
  no_webhook: { status: 409, meaning: "The server has no webhook: `--webhook-url` is not set." },
  order_closed: { status: 409, meaning: "The order is already completed or cancelled." },
  body_too_large: {
    status: 413,
    meaning: `The request body exceeds ${kibibytes(MAX_ADMIN_BODY_BYTES)}, or ${kibibytes(MAX_OPEN_BODY_BYTES)} to sign in.`,
  },
  too_many_attempts: {
    status: 429,
    meaning: "Too many wrong tokens or rotations. `Retry-After` has the seconds to wait.",
  },
  too_many_requests: {
    status: 429,
    meaning:
      "The operator exceeds the rate of requests. Nothing was done; `Retry-After` has the seconds to wait.",
  },
  provider_unavailable: {
    status: 503,
    meaning: "The provider does not respond, or not as it should. Tokens work.",
  },
});

export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/* The rejections are marked as pure, so that the console's script leaves them out. */
export const NOT_SIGNED_IN = /* @__PURE__ */ new Rejection(
  "not_signed_in",
  "Sign in first: open the URL that petstore admin-url prints, or send the token of an operator in the Authorization header: Bearer <token>.",
);
export const LOGIN_ENDED = /* @__PURE__ */ new Rejection(
  "not_signed_in",
  "The login by a code has ended. The console makes a new code on its page of settings; run petstore login with it.",
);
export const INVALID_TOKEN = /* @__PURE__ */ new Rejection(
  "invalid_token",
  "The token is wrong or was replaced, or its operator is revoked. petstore admin-url prints a URL to sign in with.",
);
export const INVALID_CODE = /* @__PURE__ */ new Rejection(
  "invalid_code",
  "The code was used, or is older than five minutes. petstore admin-url prints a new one.",
);
export const INVALID_CODE_FOR_COMMANDS = /* @__PURE__ */ new Rejection(
  "invalid_code",
  "The code was used, is older than five minutes, or its session has ended. The console makes a new one on its page of settings.",
);
export const CODE_FOR_COMMANDS = /* @__PURE__ */ new Rejection(
  "invalid_code",
  "The code is for the command line, and signs in no browser. Run petstore login with the URL of the server, and paste the code there.",
);
export const REJECTED_SIGN_IN = /* @__PURE__ */ new Rejection(
  "rejected_sign_in",
  "The provider did not sign you in, or its response was used or is for another page. Sign in again; the audit trail says what was wrong.",
);
export const NO_PROVIDER = /* @__PURE__ */ new Rejection(
  "no_provider",
  "The server has no provider: --oidc-issuer is not set.",
);
export const NOT_OF_PROVIDER = /* @__PURE__ */ new Rejection(
  "no_provider",
  "You do not sign in with a provider. Log in on the command line with your token.",
);
export const OWN_OPERATOR = /* @__PURE__ */ new Rejection(
  "own_operator",
  "You cannot revoke yourself. Another operator with the role admin can.",
);

export function providerUnavailable(host: string, reason: string, retryAfterSeconds: number) {
  const message = `Nobody can sign in with ${host} now: ${reason}. ${retryAfterText(retryAfterSeconds)}`;
  return new Rejection("provider_unavailable", message, retryAfterSeconds);
}

export function signInNotAllowed(reason: string): Rejection<"sign_in_not_allowed"> {
  return new Rejection(
    "sign_in_not_allowed",
    `${reason}. An operator with the role admin can see more in the audit trail.`,
  );
}

export function forbiddenRole({ name, role }: NewOperator, needed: Role): Rejection<"forbidden_role"> {
  return new Rejection("forbidden_role", `This needs the role ${needed}; ${name} has ${role}.`);
}

export function replacedToken({ name }: Pick<NewOperator, "name">): Rejection<"replaced_token"> {
  return new Rejection(
    "replaced_token",
    `The token of ${name} was replaced. Until its overlap ends, it and its sessions can neither sign out everywhere nor change operators or API keys. Use the new token.`,
  );
}

export function operatorsUnknown(retryAfterSeconds: number) {
  return temporarilyUnavailable(
    "The database is unavailable, so operators cannot be recognized",
    retryAfterSeconds,
  );
}

export function tooManyAttempts(retryAfterSeconds: number, what = "wrong tokens were sent") {
  const message = `Too many ${what}. ${retryAfterText(retryAfterSeconds)}`;
  return new Rejection("too_many_attempts", message, retryAfterSeconds);
}

export function tooManyRequests(retryAfterSeconds: number) {
  const message = `Too many requests of this operator at once. ${retryAfterText(retryAfterSeconds)}`;
  return new Rejection("too_many_requests", message, retryAfterSeconds);
}

export const FORBIDDEN_HOST = /* @__PURE__ */ new Rejection(
  "forbidden_host",
  "The Host header must have an IP address, localhost or a name that the server was given with --admin-hostname.",
);
export const FORBIDDEN_ORIGIN = /* @__PURE__ */ new Rejection(
  "forbidden_origin",
  "The request comes from a page of another origin, as the Origin or Sec-Fetch-Site header says.",
);
export const ADMIN_PATH_NOT_FOUND = /* @__PURE__ */ new Rejection(
  "not_found",
  "No such path. The paths of the admin API are listed at /api/openapi.json.",
);
