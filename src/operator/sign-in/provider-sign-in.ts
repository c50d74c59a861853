/* Signs people in with a provider: those whom it has authenticated, and to whom a rule grants a role. */

import { Rejection } from "../../api/errors.ts";
import type { ProviderConfig } from "../../config/config.ts";
import type { Actor } from "../../domain/audit.ts";
import { NO_TOKEN, OPERATOR_NAME } from "../../domain/operators.ts";
import type { AuditStore } from "../../domain/ports/audit.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { type Claims, claimValues, grantedRole, seenClaims } from "../../domain/role-rules.ts";
import type { Environment } from "../../domain/environments.ts";
import type { Request } from "../../http1/index.ts";
import type { Log } from "../../observe/log.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import { AddressBuckets } from "../../runtime/address-buckets.ts";
import { providerUnavailable, signInNotAllowed, REJECTED_SIGN_IN, tooManyAttempts } from "../errors.ts";
import { FailedSignIns } from "./failed-sign-ins.ts";
import type * as ProviderModule from "./provider.ts";
import type { Person, ProviderClient, ProviderResponse } from "./provider.ts";
import { type NewSessionPrincipal, SESSION_MS } from "./admin-authentication.ts";
import { SignInStates } from "./sign-in-states.ts";
import { generateToken, toNewToken } from "./token.ts";

/**
 * The limits for steps of sign-ins, which anybody can cause. The end of one sends three requests to the provider. It is
 * not limited if this environment has begun the sign-in: its beginning was.
 */
const STEPS_OF_ADDRESS = { max: 20, perSecond: 1 };
const STEPS = { max: 200, perSecond: 20 };
const RETRY_SECONDS = 5;

export interface ProviderSignInOptions {
  readonly provider: Pick<ProviderConfig, "issuer" | "clientId" | "rules">;
  readonly secret: ProviderClient["secret"];
  readonly environment: Environment;
  readonly operators: OperatorStore;
  readonly audit: Pick<AuditStore, "recordAudit">;
  readonly clock: Clock;
  readonly log: Log;
  /** Applies a change of operators to this server at once. */
  readonly applyOperatorChanges: () => void;
}

/** Who sends a step, as far as it is limited. */
type Client = Pick<Request, "clientAddress">;
type StepRejection = Rejection<"too_many_attempts" | "provider_unavailable">;

export class ProviderSignIn {
  /** The host of the provider, which people recognize. */
  readonly host: string;
  readonly #options: ProviderSignInOptions;
  readonly #client: ProviderClient;
  readonly #states: SignInStates;
  readonly #steps: AddressBuckets;
  #provider: ProviderModule.Provider | undefined;
  readonly #outage: FailureReporter;
  /** Responses that the provider did not send to the page, which anybody can send, and people without a role. */
  readonly #rejected: FailedSignIns;
  readonly #notAllowed: FailedSignIns;

  constructor(options: ProviderSignInOptions) {
    const { provider, secret, clock, log } = options;
    this.#options = options;
    this.#client = { ...provider, secret };
    this.host = new URL(provider.issuer).host;
    this.#states = new SignInStates(options);
    this.#steps = new AddressBuckets({ each: STEPS_OF_ADDRESS, all: STEPS, now: () => clock.steadyNow() });
    this.#outage = new FailureReporter(
      (error) => log.event("admin.provider-unavailable", { provider: this.host, error }),
      (afterMs) => log.event("admin.provider-available", { provider: this.host, afterMs }),
    );
    this.#rejected = new FailedSignIns(options);
    this.#notAllowed = new FailedSignIns(options);
  }

  async begin(redirectUri: string, client: Client) {
    if (!this.#steps.take(client.clientAddress)) return tooManySteps();
    return this.#step((provider) => provider.beginSignIn(redirectUri, this.#states.create()));
  }

  /** Returns who signs in with a response of the provider. */
  async finish(
    response: ProviderResponse,
    client: Client,
    actor: Actor,
  ): Promise<NewSessionPrincipal | StepRejection | Rejection<"rejected_sign_in" | "sign_in_not_allowed">> {
    if (!this.#states.take(response.state) && !this.#steps.take(client.clientAddress)) return tooManySteps();
    const person = await this.#step((provider) => provider.finishSignIn(response));
    if (person instanceof Rejection) return person;
    if ("subject" in person) return this.#admit(person, actor);
    this.#rejected.report(actor, { reason: person.rejectedBecause });
    return REJECTED_SIGN_IN;
  }

  /** The library loads with the first step. */
  async #step<T extends object>(
    step: (provider: ProviderModule.Provider) => Promise<T>,
  ): Promise<T | Rejection<"provider_unavailable">> {
    const { Provider, ProviderError } = await import("./provider.ts");
    const { clock } = this.#options;
    this.#provider ??= new Provider(this.#client, () => clock.steadyNow());
    try {
      const result = await step(this.#provider);
      this.#outage.succeeded();
      return result;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      this.#outage.failed(error);
      return providerUnavailable(this.host, error.message, RETRY_SECONDS);
    }
  }

  async #admit({ subject, address, claims }: Person, actor: Actor) {
    const { operators, clock, provider, applyOperatorChanges } = this.#options;
    const name = address?.includes("@") && OPERATOR_NAME.test(address) ? address : undefined;
    const role = grantedRole(provider.rules, claims);
    const details = { subject, ...shownText("email", claims), ...shownText("name", claims) };
    const seen = seenClaims(provider.rules, claims);
    const notAllowed = (reason: string) => {
      this.#notAllowed.report(actor, { reason, ...details, ...seen });
      return signInNotAllowed(reason);
    };
    if (role === undefined) {
      await this.#endAccess(subject, actor);
      return notAllowed("No rule of --oidc-role grants you a role");
    }
    if (name === undefined)
      return notAllowed("The provider names no verified email address that can be the name of an operator");
    const at = clock.now();
    const by = { at, actor: { ...actor, operator: name } };
    // Nobody knows this token.
    const token = { ...toNewToken(generateToken()), hint: NO_TOKEN };
    const admitted = await operators.admitOperator(
      { name, role, subject, expiresAt: at + SESSION_MS },
      token,
      by,
    );
    if (admitted instanceof Rejection) return notAllowed(admitted.message.replace(/\.$/, ""));
    applyOperatorChanges();
    const { operator, tokenHash } = admitted;
    return { id: operator.id, name, role, tokenHash, details: { ...details, role, ...seen } };
  }

  /** Ends the sessions of somebody from whom the provider has taken every role. */
  async #endAccess(subject: string, actor: Actor): Promise<void> {
    const { operators, clock, applyOperatorChanges } = this.#options;
    await operators.expirePerson(subject, { at: clock.now(), actor });
    applyOperatorChanges();
  }
}

const tooManySteps = () => tooManyAttempts(1, "sign-ins began at once");

const MAX_SHOWN_LENGTH = 200;

/** A claim as the audit trail shows it. */
function shownText(claim: string, claims: Claims): Readonly<Record<string, string>> {
  const [value] = claimValues(claims, claim);
  return value === undefined ? {} : { [claim]: value.slice(0, MAX_SHOWN_LENGTH) };
}
