import { Unavailable } from "../../src/api/errors.ts";
import { Authenticator, type Client } from "../../src/auth/authenticator.ts";
import { ChangeReader } from "../../src/changes/change-reader.ts";
import { followChanges } from "../../src/changes/follow-changes.ts";
import { type ApiKey, type Credential, credentialFailure, invalidFrom } from "../../src/domain/api-keys.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { generateSecret, hashSecret } from "../../src/domain/secrets.ts";
import { applyPolicyChange, DEFAULT_POLICY, type Policy } from "../../src/domain/policy.ts";
import type { StoredChanges } from "../../src/domain/ports/keys.ts";
import { newQuota, peek } from "../../src/domain/rate-limit.ts";
import { Process, Remote, STARTS_AT, Troubles, type World } from "./world.ts";

interface Version {
  readonly at: number;
  readonly credential: Credential | undefined;
}

interface ServerOptions {
  readonly process: Process;
  readonly authenticator: Authenticator;
  readonly reader: ChangeReader;
  readonly startedAt: number;
  readonly policy: { current: Policy };
  readonly readPolicy: () => Promise<Policy>;
}

interface Unban {
  readonly keyId: number;
  readonly requestedAt: number;
  readonly at: number;
}

const SECRETS = Array.from({ length: 6 }, () => generateSecret("production"));
const HASHES = SECRETS.map(hashSecret);
const NEW_KEY: Omit<ApiKey, "id"> = { name: "test", labels: [], plan: "free", access: "write", createdAt: 0 };
const CLIENT: Client = { clientAddress: "192.0.2.1" };
const NO_LIMITS = { peek: () => peek(newQuota(), DEFAULT_PLANS.anonymous, 0) };
/** The longest delay that the documentation allows. */
const MAX_STALE_MS = 1_000;
const TIMEOUT_MS = 400;
const RUN_MS = 8_000;

/** The key store. Secrets 0 to 2 are those of keys 0 to 2, which exist from the start; rotations add the others. */
class KeyDatabase {
  readonly versions = SECRETS.map((): Version[] => [{ at: 0, credential: undefined }]);
  readonly unbans: Unban[] = [];
  /** The limits of the plans: the limit per minute of the Free plan is the index of the version. */
  readonly policies: { readonly at: number; readonly policy: Policy }[] = [{ at: 0, policy: policyAt(0) }];
  readonly #keys = new Map<number, ApiKey & { revision: number; unbanRevision: number }>();
  #revision = 0;

  constructor(private readonly world: World) {}

  findCredential(hash: string): Credential | undefined {
    return this.versions[HASHES.indexOf(hash)]?.at(-1)?.credential;
  }

  changesSince(since: number): StoredChanges {
    const keys = [...this.#keys.values()].filter(({ revision }) => revision > since);
    const changed = keys.map((key) => ({ key, kind: key.unbanRevision > since ? "unban" : "key" }) as const);
    return { revision: this.#revision, timeline: "1", changed, hasQuestions: false };
  }

  has(id: number): boolean {
    return this.#keys.has(id);
  }

  /** Changes a key, or creates it if it does not exist. */
  update(id: number, change: (key: ApiKey) => ApiKey = (same) => same): void {
    const before = this.#keys.get(id);
    const revision = ++this.#revision;
    const changed = before === undefined ? { ...NEW_KEY, id } : change(before);
    const isUnban = changed.unbannedAt !== before?.unbannedAt;
    const key = { ...changed, revision, unbanRevision: isUnban ? revision : (before?.unbanRevision ?? 0) };
    this.#keys.set(id, key);
    this.versions.forEach((versions, i) => {
      const last = versions.at(-1)?.credential;
      if (last?.key.id === id || (before === undefined && i === id)) this.#add(i, { ...last, key });
    });
  }

  readPolicy(): Policy {
    return this.policies.at(-1)?.policy ?? DEFAULT_POLICY;
  }

  updatePolicy(): void {
    this.#revision++;
    this.policies.push({ at: this.world.now, policy: policyAt(this.policies.length) });
  }

  rotate(id: number, overlapEndsAt: number): void {
    const next = this.versions.findIndex((versions, i) => i > 2 && versions.length === 1);
    const key = this.#keys.get(id);
    if (next === -1 || key === undefined) return;
    this.versions.forEach((versions, i) => {
      const last = versions.at(-1)?.credential;
      if (last?.key.id === id)
        this.#add(i, { key, validUntil: Math.min(last.validUntil ?? Infinity, overlapEndsAt) });
    });
    this.#add(next, { key });
    this.update(id);
  }

  #add(secret: number, credential: Credential): void {
    this.versions[secret]?.push({ at: this.world.now, credential });
  }
}

function policyAt(version: number): Policy {
  return applyPolicyChange(DEFAULT_POLICY, { plans: { free: { perMinute: version } } });
}

/**
 * Three servers use one key store, over a network with delays, silence and lost replies. Operators create, revoke,
 * disable, enable, rotate and unban keys, change their plans and the limits of a plan, on any of the servers, and
 * clients use them.
 *
 * The rules are: A client gets a response for a state that its key had while the request ran, or within the second
 * before. On the server on which an operator changed the key, the state is not older than that change. States never go
 * back. The same holds for the limits of the plan. An unban lifts every ban from before it, once on each server, and no
 * ban that began after it.
 */
export function simulateChanges(world: World): void {
  const { random } = world;
  const keys = new KeyDatabase(world);
  const troubles = new Troubles();
  /** The troubles, and the pauses of servers. Until a server continues, no unban reaches it. */
  const troublesAndPauses = new Troubles();

  /** The time from which on a server knows the changes. A pause excuses it only if it cannot read them afterwards. */
  function calmSince(): number {
    const calm = troubles.calmSince(world.now, MAX_STALE_MS);
    return calm === world.now - MAX_STALE_MS ? calm : troublesAndPauses.calmSince(world.now, MAX_STALE_MS);
  }
  const areClocksRight = random.chance(2);
  const network = new Remote(world, 40, TIMEOUT_MS);

  function start(name: string): void {
    const process = new Process(world, name);
    if (!areClocksRight) process.wallStepMs = random.pick([0, -3_600_000, 3_600_000]);
    const startedAt = world.now;
    const policy = { current: DEFAULT_POLICY };
    const readPolicy = () => network.call(process, () => keys.readPolicy());
    const options = {
      keys: {
        findCredential: (hash: string) => network.call(process, () => keys.findCredential(hash)),
        changesSince: (revision: number) => network.call(process, () => keys.changesSince(revision)),
      },
      environment: "production",
      policy,
      clock: process.clock,
      rateLimiter: NO_LIMITS,
      maxVerified: random.pick([2, 100]),
      scheduler: process,
    } as const;
    const open = async () => {
      policy.current = await readPolicy();
      const authenticator = new Authenticator(options);
      return { authenticator, reader: await ChangeReader.open({ ...options, authenticator }) };
    };
    open().then(
      (opened) => new Server({ process, ...opened, startedAt, policy, readPolicy }).serve(),
      () => process.setTimeout(() => start(name), 100),
    );
  }

  class Server {
    readonly #steadyStart: number;
    readonly #follower: ReturnType<typeof followChanges>;
    /** The oldest state that a client may get, by secret, because states never go back. */
    readonly #floors = SECRETS.map(() => 0);
    readonly #applied: { readonly keyId: number; readonly before: number }[] = [];
    #isReadable = true;
    readonly process: Process;
    readonly authenticator: Authenticator;
    readonly startedAt: number;
    readonly #policy: ServerOptions["policy"];
    /** The version of the policy that a client has got. */
    #policyFloor = 0;

    constructor({ process, authenticator, reader, startedAt, policy, readPolicy }: ServerOptions) {
      this.process = process;
      this.authenticator = authenticator;
      this.startedAt = startedAt;
      this.#policy = policy;
      this.#steadyStart = process.clock.steadyNow() - process.now();
      this.#follower = followChanges({
        reader,
        authenticator,
        clock: process.clock,
        scheduler: process,
        readPolicy,
        applyPolicy: (current) => void (policy.current = current),
        rateLimiter: {
          unban: ({ id }, agoMs) => {
            if (random.chance(4) && troubles.has(world.now)) throw new Error("no response");
            this.#unbanned(Number(id), process.clock.steadyNow() - agoMs - this.#steadyStart);
          },
        },
        onChanges() {},
        onUnreadable: () => void (this.#isReadable = false),
        onReadable: () => void (this.#isReadable = true),
        onUnbanError() {},
      });
    }

    serve(): void {
      const often = (count: number, work: () => void) =>
        world.often(count, RUN_MS - world.now, work, this.process);
      for (let burst = 0; burst < 5; burst++) {
        const at = random.between(0, RUN_MS - world.now);
        for (let i = random.below(12); i > 0; i--)
          world.schedule(at + random.between(0, 500), () => this.#request(), this.process);
      }
      often(6, () => void this.#change());
      // What is cached is too old after a pause, so a pause excuses nothing.
      often(2, () => this.#pause(random.between(0, 3_000)));
      if (random.chance(4)) often(2, () => this.#kill());
      if (areClocksRight) world.schedule(RUN_MS - world.now, () => this.#judgeUnbans(), this.process);
    }

    #pause(ms: number): void {
      world.note(this.process.name, "is paused for", ms);
      this.process.block(ms);
      troublesAndPauses.add(world.now, ms);
    }

    #kill(): void {
      world.note(this.process.name, "is killed");
      this.process.kill();
      world.schedule(50, () => start(this.process.name));
    }

    async #change(): Promise<void> {
      const id = random.below(3);
      const now = this.process.clock.now();
      const changes: readonly (readonly [string, () => void])[] = [
        ["revoke", () => keys.update(id, (key) => ({ ...key, revokedAt: now }))],
        ["disable", () => keys.update(id, (key) => ({ ...key, disabledAt: now }))],
        ["enable", () => keys.update(id, ({ disabledAt: _disabledAt, ...key }) => key)],
        ["plan", () => keys.update(id, (key) => ({ ...key, plan: random.pick(["free", "pro"]) }))],
        ["rotate", () => keys.rotate(id, now + random.pick([0, 2_000]))],
        ["unban", () => this.#unban(id, now)],
        ["limits", () => keys.updatePolicy()],
      ];
      const [what, apply] = changes[random.below(changes.length)] ?? ["", () => {}];
      let changedAt = 0;
      world.note(this.process.name, what, id);
      for (let i = 0; i < 8; i++)
        world.schedule(random.between(0, 200), () => this.#request(random.pick([id, 3, 4, 5])), this.process);
      try {
        await network.call(this.process, () => {
          changedAt = world.now;
          if (keys.has(id)) apply();
          else keys.update(id);
        });
      } catch {
        return;
      }
      await this.#follower.applyNow();
      world.note(this.process.name, what, id, this.#isReadable ? "is applied" : "is not applied yet");
      if (!this.#isReadable) return;
      keys.versions.forEach((versions, i) => {
        const current = versions.findLastIndex(({ at }) => at <= changedAt);
        this.#floors[i] = Math.max(this.#floors[i] ?? 0, current);
      });
      this.#policyFloor = Math.max(
        this.#policyFloor,
        keys.policies.findLastIndex(({ at }) => at <= changedAt),
      );
    }

    #judgePolicy(): void {
      const { perMinute: version } = this.#policy.current.plans.free;
      const since = calmSince();
      const calm = since < this.startedAt ? 0 : keys.policies.findLastIndex(({ at }) => at <= since);
      const oldest = Math.max(this.#policyFloor, calm);
      world.check(version >= oldest, () => `limits of version ${version} instead of ${oldest}`);
      this.#policyFloor = version;
    }

    #unban(keyId: number, unbannedAt: number): void {
      keys.update(keyId, (key) => ({ ...key, unbannedAt }));
      keys.unbans.push({ keyId, at: world.now, requestedAt: unbannedAt - STARTS_AT });
    }

    #request(i = random.below(SECRETS.length)): void {
      const current = this.#follower.whenCurrent(this.process.now());
      if (current) void current.then(() => this.#send(i));
      else this.#send(i);
    }

    #send(i: number): void {
      this.#judgePolicy();
      const versions = keys.versions[i] ?? [];
      const { process } = this;
      const calm = versions.findLastIndex(({ at }) => at <= calmSince());
      const oldest = Math.max(this.#floors[i] ?? 0, calm);
      const startedAt = process.clock.now();
      const finish = (result: unknown) => {
        if (result instanceof Unavailable) return;
        const got = typeof result === "string" ? result : nameOf(result);
        world.note(process.name, "request with secret", i, "got", got);
        const now = process.clock.now();
        const isExpected = ({ credential }: Version) =>
          got === expected(credential, startedAt) || got === expected(credential, now);
        const match = versions.findIndex((version, n) => n >= oldest && isExpected(version));
        world.check(match !== -1, () => `secret ${i} got ${got}; it was not so from version ${oldest} on`);
        this.#floors[i] = Math.max(this.#floors[i] ?? 0, match);
      };
      const result = this.authenticator.authenticate(`Bearer ${SECRETS[i]}`, CLIENT);
      if (result instanceof Promise) void result.then(finish);
      else finish(result);
    }

    #unbanned(keyId: number, before: number): void {
      world.note(this.process.name, "ends bans of key", keyId, "from before", before.toFixed(3));
      this.#applied.push({ keyId, before });
      const unbans = keys.unbans.filter((unban) => unban.keyId === keyId && unban.at >= this.startedAt);
      const applied = this.#applied.filter((unban) => unban.keyId === keyId);
      world.check(applied.length <= unbans.length, `an unban of key ${keyId} was applied twice`);
      const latest = areClocksRight ? (unbans.at(-1)?.at ?? 0) : world.now;
      world.check(before <= latest + 1, `bans that began after the unban of key ${keyId} were ended`);
    }

    #judgeUnbans(): void {
      for (const { keyId, at } of keys.unbans) {
        // If two happen at the same time, the last one in the store counts.
        const since = keys.unbans.filter((unban) => unban.keyId === keyId && unban.at >= at);
        const requestedAt = Math.min(...since.map((unban) => unban.requestedAt));
        if (at < this.startedAt + TIMEOUT_MS || at > troublesAndPauses.calmSince(world.now, MAX_STALE_MS))
          continue;
        const isApplied = this.#applied.some((one) => one.keyId === keyId && one.before >= requestedAt - 1);
        world.check(isApplied, `the unban of key ${keyId} did not reach ${this.process.name}`);
      }
    }
  }

  for (const name of ["server 1", "server 2", "server 3"]) start(name);
  world.often(4, RUN_MS, () => {
    const ms = random.between(0, 2_000);
    network.lossOneIn = random.pick([0, 2, 5]);
    network.pause(random.pick([0, ms]));
    world.schedule(ms, () => void (network.lossOneIn = 0));
    for (const each of [troubles, troublesAndPauses]) each.add(world.now, ms + TIMEOUT_MS + 10);
  });
  world.run(RUN_MS);
}

/** The response that a client with the credential gets. */
function expected(credential: Credential | undefined, now: number): string {
  if (credential === undefined) return "invalid_api_key";
  if (invalidFrom(credential) > now) return nameOf({ keyId: credential.key.id, plan: credential.key.plan });
  return String(credentialFailure(credential));
}

function nameOf(principal: unknown): string {
  const { keyId, plan } = principal as { keyId: number; plan: string };
  return `key ${keyId}, ${plan}`;
}
