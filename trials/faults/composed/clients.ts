import { encodeCursor } from "../../../src/domain/cursor.ts";
import { Random } from "../../harness/random.ts";
import { UNLIMITED_PER_MINUTE } from "../../harness/petstore.ts";
import type { CredentialChange, Ending, Pet } from "./history.ts";
import type { Credential, Recorder, Reply } from "./recorder.ts";
import { SERVERS } from "./schedule.ts";

const PAGE = 100;
const WRITERS = 4;
const READERS = 4;
const OPERATORS = 3;
const LIMITED_KEYS = 3;
/** The requests with one key that wait for a server that is paused. */
const WAITING_REQUESTS = 10;
const ASK_EVERY_MS = 20;
/** A change takes effect on every other server within a second, so a request that is sent later is rejected. */
const ENDED_WITHIN_MS = 1_050;
/** How long a credential is used after it was disabled or revoked. */
const USED_AFTER_MS = 2_500;
/** When keys expire. It is longer than a run, and shorter than the longer steps of a clock. */
const EXPIRES_AFTER_MS = 3_600_000;
const NAMES_PER_RUN = 100_000;
const NO_PATH = "/v1/nothing";

interface CredentialOptions {
  readonly isOperator: boolean;
  readonly perMinute?: number;
  readonly expiresAt?: Date;
}

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
const idIn = (value: unknown) => Number(field(value, "id") ?? 0);
const itemsIn = (value: unknown): readonly unknown[] => {
  const items = Array.isArray(value) ? value : field(value, "items");
  return Array.isArray(items) ? items : [];
};

function petIn(value: unknown): Pet {
  return {
    id: idIn(value),
    name: String(field(value, "name")),
    isOrdered: field(value, "status") === "pending",
  };
}

/** Clients and operators of the deployment. The seed determines what they do, but not when the servers respond. */
export class Clients {
  /** The requests per minute, by the name of the key. */
  readonly limits: Record<string, number> = {};
  /** When keys expire, by name, in milliseconds since the start of the run. */
  readonly expiries: Record<string, number> = {};
  /** The pets that nobody has ordered. */
  readonly #available: number[] = [];
  #newest = 0;
  #numbers: number;
  #main: Credential;
  #expiring: Credential;

  constructor(
    private readonly recorder: Recorder,
    private readonly seed: number,
    private readonly root: Credential,
    /** Whether a server is paused in this run. */
    private readonly pauses: boolean,
  ) {
    // Names of several runs on one database differ.
    this.#numbers = seed * NAMES_PER_RUN;
    this.#main = root;
    this.#expiring = root;
  }

  /** Creates the keys. This must precede the setting of clocks, because a server creates no key that has expired. */
  async prepare(): Promise<void> {
    const random = new Random(this.seed);
    this.#main = await this.#createCredential(random, { isOperator: false });
    // The last admin cannot be revoked, so there is another one.
    await this.#createCredential(random, { isOperator: true });
    const expiresAt = new Date(Date.now() + EXPIRES_AFTER_MS);
    this.#expiring = await this.#createCredential(random, { isOperator: false, expiresAt });
    this.expiries[this.#expiring.name] = this.recorder.now() + EXPIRES_AFTER_MS;
  }

  /** Runs all clients until `isOver`. What is unacknowledged by then is repeated until `isLate`. */
  async work(isOver: () => boolean, isLate: () => boolean): Promise<void> {
    const workers: ((random: Random) => Promise<void>)[] = [
      ...Array.from({ length: WRITERS }, () => (random: Random) => this.#write(random, isLate)),
      ...Array.from({ length: READERS }, () => (random: Random) => this.#read(random)),
      (random: Random) => this.#order(random, isLate),
      ...Array.from({ length: OPERATORS }, () => (random: Random) => this.#endCredential(random, isLate)),
      ...(this.pauses ? [(random: Random) => this.#endWhilePaused(random, isOver, isLate)] : []),
      (random: Random) => this.#inspectByCommand(random),
      (random: Random) => this.#use(random, this.#server(random), this.#expiring),
    ];
    const working = workers.map(async (work, i) => {
      const random = new Random(this.seed * 1_000 + i);
      while (!isOver()) {
        await work(random);
        await Bun.sleep(random.between(10, 120));
      }
    });
    const limited = Array.from({ length: LIMITED_KEYS }, (_, i) =>
      this.#useLimitedKey(new Random(this.seed * 1_000 + 500 + i), isOver),
    );
    await Promise.all([...working, ...limited]);
  }

  #number(): number {
    return ++this.#numbers;
  }

  #server(random: Random): number {
    return 1 + random.below(SERVERS);
  }

  /** Repeats a request that got no response, or 503, on another server. Returns the last reply. */
  async #repeat(random: Random, isLate: () => boolean, attempt: (server: number) => Promise<Reply>) {
    for (;;) {
      const reply = await attempt(this.#server(random));
      const isOpen = reply.status === 0 || reply.status === 503;
      const isConflict = field(reply.body, "code") === "idempotency_conflict";
      if ((!isOpen && !isConflict) || isLate()) return reply;
      await Bun.sleep(random.between(30, 250));
    }
  }

  async #create(server: number, credential: Credential, name: string, idempotencyKey?: string) {
    return this.recorder.request(
      {
        server,
        credential,
        method: "POST",
        path: "/v1/pets",
        idempotencyKey,
        body: { name, categoryId: 1, status: "available" },
      },
      ({ status, body }) => ({
        kind: "create",
        name,
        ...(idempotencyKey !== undefined && { idempotencyKey }),
        ...(status === 201 && { id: idIn(body) }),
      }),
    );
  }

  async #write(random: Random, isLate: () => boolean): Promise<void> {
    const name = `pet ${this.#number()}`;
    const idempotencyKey = random.chance(3) ? undefined : name.replace(" ", "-");
    const { status, body } = await this.#repeat(random, isLate, (server) =>
      this.#create(server, this.#main, name, idempotencyKey),
    );
    if (status !== 201) return;
    const id = idIn(body);
    this.#newest = Math.max(this.#newest, id);
    this.#available.push(id);
    await this.#readPets(random, this.#server(random), id);
  }

  async #order(random: Random, isLate: () => boolean): Promise<void> {
    const [petId] = this.#available.splice(random.below(this.#available.length), 1);
    if (petId === undefined) return;
    const idempotencyKey = random.chance(3) ? undefined : `order-${petId}`;
    await this.#repeat(random, isLate, (server) =>
      this.recorder.request(
        {
          server,
          credential: this.#main,
          method: "POST",
          path: "/v1/store/orders",
          idempotencyKey,
          body: { petId },
        },
        ({ status, body }) => ({
          kind: "order",
          petId,
          ...(idempotencyKey !== undefined && { idempotencyKey }),
          ...(status === 201 && { id: idIn(body) }),
        }),
      ),
    );
    await this.#readPets(random, this.#server(random), petId);
  }

  /** Reads pets, mostly new ones. */
  async #read(random: Random): Promise<void> {
    if (this.#newest === 0) return;
    const back = random.below(Math.min(this.#newest, random.pick([3, 20, PAGE])));
    await this.#readPets(random, this.#server(random), this.#newest - back);
  }

  async #readPets(random: Random, server: number, id: number): Promise<void> {
    const isPage = random.chance(3);
    const page = `/v1/pets?limit=${PAGE}&cursor=${encodeCursor("pets", BigInt(id - 1))}`;
    const path = isPage ? page : random.pick([`/v1/pets/${id}`, `/v1/pets?id=${id}`]);
    await this.recorder.request({ server, credential: this.#main, path }, ({ status, body }) => {
      const found = Array.isArray(body) ? body : status === 200 ? [body] : [];
      const pets = found.map(petIn);
      const upTo = isPage ? (pets.length === PAGE ? (pets.at(-1)?.id ?? 0) : Infinity) : id;
      return { kind: "read", after: id - 1, upTo, pets };
    });
  }

  /** Creates a key, or an operator with all permissions. A name that may have been used is not used again. */
  async #createCredential(random: Random, { isOperator, ...key }: CredentialOptions) {
    const { perMinute = UNLIMITED_PER_MINUTE, expiresAt } = key;
    for (;;) {
      const name = `${isOperator ? "operator" : "key"} ${this.#number()}`;
      const { status, body } = await this.recorder.request(
        {
          server: this.#server(random),
          credential: this.root,
          method: "POST",
          path: isOperator ? "/api/operators" : "/api/keys",
          body: isOperator
            ? { name: name.replace(" ", "-"), role: "admin" }
            : { name, plan: "enterprise", limits: { perMinute, perDay: perMinute }, expiresAt },
        },
        () => ({ kind: "change", change: "create", of: name }),
      );
      const id = String(field(field(body, isOperator ? "operator" : "key"), "id"));
      const secret = String(field(body, isOperator ? "token" : "secret"));
      if (status === 201) return { name, secret, id, isOperator };
      if (status !== 0 && status !== 503)
        throw new Error(`creating ${name}: ${status} ${JSON.stringify(body)}`);
      await Bun.sleep(random.between(50, 250));
    }
  }

  /** Disables or revokes a credential that works everywhere, while bodies of its requests are being sent. */
  async #endCredential(random: Random, isLate: () => boolean): Promise<void> {
    const credential = await this.#createCredential(random, { isOperator: random.chance(3) });
    const servers = Array.from({ length: SERVERS }, (_, i) => i + 1);
    await Promise.all(servers.map((server) => this.#use(random, server, credential)));
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const slow = servers.map((server) => {
      const waitMs = random.between(0, USED_AFTER_MS);
      return this.#use(
        random,
        server,
        credential,
        ended.then(() => Bun.sleep(waitMs)),
      );
    });
    await Bun.sleep(random.between(100, 500));
    await this.#change(random, credential, isLate);
    end();
    const until = this.recorder.now() + USED_AFTER_MS;
    const using = servers.map(async (server) => {
      while (this.recorder.now() < until) {
        await this.#use(random, server, credential);
        await Bun.sleep(random.between(50, 400));
      }
    });
    await Promise.all([...slow, ...using]);
    if (!credential.isOperator) await this.#inspect(random, credential);
  }

  /** Disables or revokes a key while a server is paused that has it in its cache, and uses it there. */
  async #endWhilePaused(random: Random, isOver: () => boolean, isLate: () => boolean): Promise<void> {
    const { deployment } = this.recorder;
    const key = await this.#createCredential(random, { isOperator: false });
    for (let server = 1; server <= SERVERS; server++) await this.#use(random, server, key);
    while (deployment.pausedServer === undefined && !isOver()) await Bun.sleep(ASK_EVERY_MS);
    const paused = deployment.pausedServer;
    if (paused === undefined) return;
    await this.#change(random, key, isLate, paused);
    await Bun.sleep(ENDED_WITHIN_MS);
    await Promise.all(Array.from({ length: WAITING_REQUESTS }, () => this.#use(random, paused, key)));
  }

  async #change(
    random: Random,
    { name, id, isOperator }: Credential,
    isLate: () => boolean,
    exceptOn?: number,
  ): Promise<void> {
    const change: CredentialChange = isOperator || random.chance(2) ? "revoke" : "disable";
    const action = () => ({ kind: "change", change, of: name }) as const;
    if (!isOperator && random.chance(4)) {
      while (!(await this.recorder.command(["keys", change, id], action)) && !isLate());
      return;
    }
    const path = `/api/${isOperator ? "operators" : "keys"}/${id}/${change}`;
    await this.#repeat(random, isLate, (drawn) => {
      const server = drawn === exceptOn ? 1 + (drawn % SERVERS) : drawn;
      return this.recorder.request({ server, credential: this.root, method: "POST", path }, action);
    });
  }

  /** Reads or writes data that no other client touches. */
  async #use(random: Random, server: number, credential: Credential, bodyAfter?: Promise<unknown>) {
    const name = `${credential.name} ${this.#number()}`;
    const { isOperator } = credential;
    if (bodyAfter || random.chance(3)) {
      const body = isOperator ? { name, plan: "free" } : { name, categoryId: 2 };
      const path = isOperator ? "/api/keys" : "/v1/pets";
      const call = { server, credential, method: "POST", path, body, ...(bodyAfter && { bodyAfter }) };
      await this.recorder.request(call, () => ({ kind: "use", what: `create ${name}`, name }));
      return;
    }
    const path = isOperator ? "/api/keys?limit=1" : "/v1/pets?limit=1";
    await this.recorder.request({ server, credential, path }, () => ({ kind: "use", what: `get ${path}` }));
  }

  async #inspect(random: Random, { name, id }: Credential): Promise<void> {
    const call = { server: this.#server(random), credential: this.root, path: `/api/keys/${id}` };
    await this.recorder.request(call, ({ body }) => {
      return { kind: "inspect", of: name, state: String(field(body, "state")) };
    });
  }

  /** Runs a command that begins at a random moment, and reads. */
  async #inspectByCommand(random: Random): Promise<void> {
    const { name, id } = await this.#createCredential(random, { isOperator: false });
    await Bun.sleep(random.between(0, 2_000));
    await this.recorder.command(["keys", "show", id], (output) => {
      return { kind: "inspect", of: name, state: String(field(output, "state")) };
    });
  }

  /**
   * Uses a key whose limit is reached in the middle of the run; a day is longer than a run. The requests need no
   * database: a path that does not exist counts like every other.
   */
  async #useLimitedKey(random: Random, isOver: () => boolean): Promise<void> {
    const limit = random.pick([20, 30, 60]);
    await Bun.sleep(random.between(0, 3_000));
    const credential = await this.#createCredential(random, { isOperator: false, perMinute: limit });
    this.limits[credential.name] = limit;
    const pending = new Set<Promise<unknown>>();
    const everyMs = random.between(2_000, 8_000) / limit;
    while (!isOver()) {
      const server = this.#server(random);
      const request = this.recorder.request({ server, credential, path: NO_PATH }, () => {
        return { kind: "use", what: `get ${NO_PATH}` };
      });
      pending.add(request);
      void request.finally(() => pending.delete(request));
      await Bun.sleep(random.between(0, 2 * everyMs));
    }
    await Promise.all(pending);
  }

  /** Reads everything that the server shows. */
  async ending(server: number): Promise<Ending> {
    const pets = await this.#all(server, "pets");
    const orders = await this.#all(server, "orders");
    const keys = await this.#all(server, "keys");
    return {
      server,
      pets: pets.map(petIn),
      orders: orders.map((order) => ({ id: idIn(order), petId: Number(field(order, "petId")) })),
      keys: keys.map((key) => String(field(key, "name"))),
    };
  }

  /** Reads a list through the listener for operators, page by page. */
  async #all(server: number, what: string): Promise<unknown[]> {
    const all: unknown[] = [];
    let cursor = "";
    do {
      const path = `/api/${what}?limit=${PAGE}${cursor}`;
      let body: unknown;
      await this.recorder.request({ server, credential: this.root, path }, (reply) => {
        ({ body } = reply);
        return { kind: "use", what: `get ${path}` };
      });
      all.push(...itemsIn(body));
      const next = field(body, "nextCursor");
      cursor = typeof next === "string" ? `&cursor=${next}` : "";
    } while (cursor !== "");
    return all;
  }
}
