/* Runs `npx bun trials/faults/history.ts`; its --help describes the options. */

import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { encodeCursor } from "../../src/domain/cursor.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, isGiven, runCommand } from "../harness/command-line.ts";
import { Fleet } from "../harness/fleet.ts";
import {
  type Header,
  HttpConnection,
  type HttpRequest,
  type HttpResponse,
  NoResponse,
} from "../harness/http-connection.ts";
import { adminFlags } from "../harness/petstore.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { Random } from "../harness/random.ts";
import { compileSlowSync } from "../harness/slow-sync.ts";
import { countsOf } from "../harness/statistics.ts";
import { formatCount } from "../harness/table.ts";

interface HistoryOptions {
  readonly requests: number;
  readonly seed: number;
}

/** What the database has in the end. */
interface Contents {
  readonly pets: readonly { readonly id: bigint | number; readonly name: string; readonly status: string }[];
  /** The numbers of creates that were done twice, and the pets that were ordered twice. */
  readonly doubled: readonly unknown[];
  readonly ordered: readonly unknown[];
}

const SERVERS = 3;
const CLIENTS = 48;
const PAGE = 20;
const MAX_KILL_EVERY_MS = 400;
const MAX_SERVER_LIFE_MS = 1_500;
/** How much longer each sync of a server on SQLite takes, so that many kills fall into one. */
const SYNC_MS = 3;
/** How long a client waits after it got no response, and how often it sends a create at most. */
const PAUSE_MS = 50;
const MAX_ATTEMPTS = 400;
const TOKEN = "the-token-of-all-servers";

/** The knowledge of clients about a pet, and the number of the response that they have it from. */
interface Known {
  readonly since: number;
  /** The name of the pet, which is the number of its last update. */
  readonly version: number;
  readonly isOrdered: boolean;
}

class Pet {
  /** The states that clients know. Later reads must not be older. */
  readonly known: Known[] = [];
  updates = 0;
  isUpdating = false;
  orders = 0;

  constructor(readonly id: number) {}

  learn(since: number, version: number, isOrdered: boolean): void {
    const last = this.known.at(-1);
    const next = {
      since,
      version: Math.max(version, last?.version ?? 0),
      isOrdered: isOrdered || last?.isOrdered === true,
    };
    if (next.version !== last?.version || next.isOrdered !== last.isOrdered) this.known.push(next);
  }

  knownAt(time: number): Known | undefined {
    return this.known.findLast(({ since }) => since <= time);
  }
}

/** A page or a pet that a client has read, for conditional requests. */
interface Read {
  readonly path: string;
  /** For a page, the identifier that it follows. */
  readonly after: number | undefined;
  readonly etag: string;
  readonly body: string;
}

/** The clients of three servers, and what they must see. */
class History {
  readonly problems: string[] = [];
  readonly kinds: string[] = [];
  readonly errors: string[] = [];
  unanswered = 0;
  readonly #random: Random;
  readonly #pets = new Map<number, Pet>();
  #newest = 0;
  #creates = 0;
  #responses = 0;

  constructor(
    private readonly fleet: Fleet,
    private readonly key: string,
    private readonly options: HistoryOptions,
  ) {
    this.#random = new Random(options.seed);
  }

  get count(): number {
    return this.kinds.length + this.errors.length;
  }

  async play(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, () => this.#client()));
  }

  async #client(): Promise<void> {
    const client = new Client(this.fleet.ports, this.key, this.#random);
    const works = [
      [12, () => this.#create(client)],
      [10, () => this.#order(client)],
      [10, () => this.#update(client)],
      [16, () => this.#readAgain(client)],
      [22, () => this.#readPet(client)],
      [30, () => this.#readPage(client)],
    ] as const;
    while (this.count < this.options.requests && this.problems.length < 10) {
      let chosen = this.#random.below(100);
      const [, work] = works.find(([share]) => (chosen -= share) < 0) ?? works[0];
      await work();
    }
    client.close();
  }

  #check(isRight: boolean, problem: () => string): void {
    if (!isRight) this.problems.push(problem());
  }

  /**
   * Sends a request. Returns undefined if the database was unavailable or the server was killed, which must be the only
   * errors.
   */
  async #send(kind: string, sent: Promise<HttpResponse>, ...expected: number[]) {
    const response = await sent.catch((error: unknown) => {
      if (!(error instanceof NoResponse)) throw error;
      return undefined;
    });
    if (response === undefined) {
      this.unanswered++;
      return void (await Bun.sleep(PAUSE_MS));
    }
    const { status, headers, body } = response;
    this.#responses++;
    if (status === 503) this.errors.push(kind);
    else this.kinds.push(status === 304 ? "304" : kind);
    this.#check(status === 503 || expected.includes(status), () => `${kind}: ${status} ${body}`);
    return expected.includes(status) ? { status, headers, body } : undefined;
  }

  #pet(id: number): Pet {
    const pet = this.#pets.get(id) ?? new Pet(id);
    this.#pets.set(id, pet);
    this.#newest = Math.max(this.#newest, id);
    return pet;
  }

  /** Picks a pet, mostly one of the newest, so that many clients read what others write. */
  #anyPet(): Pet | undefined {
    const back = this.#random.pick([4, 4, 30, this.#newest]);
    return this.#pets.get(this.#newest - this.#random.below(Math.max(1, Math.min(back, this.#newest))));
  }

  /** Creates a pet. A create without a response is repeated on another server. */
  async #create(client: Client): Promise<void> {
    const number = ++this.#creates;
    const body = `{"name":"0","categoryId":${number},"status":"available"}`;
    const newest = this.#newest;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const sent = client.post("/v1/pets", body, ["Idempotency-Key", `create-${number}`]);
      const response = await this.#send("create", sent, 201, 409);
      if (response?.status !== 201) continue;
      const id = Number(/^\{"id":(\d+),/.exec(response.body)?.[1]);
      // A repeated response has the identifier of the first attempt.
      this.#check(attempt > 0 || id > newest, () => `identifier ${id} after ${newest}`);
      this.#pet(id).learn(this.#responses, 0, false);
      return this.#readPet(client, id);
    }
    this.problems.push(`create ${number} never succeeds`);
  }

  async #order(client: Client): Promise<void> {
    const pet = this.#anyPet();
    if (pet === undefined) return;
    const wasOrdered = pet.known.at(-1)?.isOrdered === true;
    pet.orders++;
    const sent = client.post("/v1/store/orders", `{"petId":${pet.id}}`);
    const response = await this.#send("order", sent, 201, 409);
    if (response === undefined) return;
    if (response.status === 201) this.#check(!wasOrdered, () => `pet ${pet.id} is ordered twice`);
    else this.#check(pet.orders > 1, () => `pet ${pet.id} cannot be ordered: ${response.body}`);
    pet.learn(this.#responses, 0, true);
    await this.#readPet(client, pet.id);
  }

  async #update(client: Client): Promise<void> {
    const pet = this.#anyPet();
    if (pet === undefined || pet.isUpdating) return;
    pet.isUpdating = true;
    const version = ++pet.updates;
    const url = `${this.fleet.servers[client.server()]?.adminUrl}/api/pets/${pet.id}`;
    const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
    const sent = fetch(url, { method: "PATCH", headers, body: `{"name":"${version}"}` }).catch(
      (error: unknown) => {
        throw new NoResponse(String(error));
      },
    );
    const response = sent.then(async (received) => {
      return { status: received.status, headers: {}, rawHeaders: [], body: await received.text(), bytes: 0 };
    });
    const isDone = await this.#send("update", response, 200);
    if (isDone) pet.learn(this.#responses, version, false);
    pet.isUpdating = false;
    if (isDone) await this.#readPet(client, pet.id);
  }

  async #readPet(client: Client, id = this.#anyPet()?.id): Promise<void> {
    if (id !== undefined) await this.#read("get", client, { path: `/v1/pets/${id}`, after: undefined });
  }

  async #readPage(client: Client): Promise<void> {
    const after = this.#anyPet()?.id ?? 0;
    const path = `/v1/pets?limit=${PAGE}&cursor=${encodeCursor("pets", BigInt(after))}`;
    await this.#read("list", client, { path, after });
  }

  async #readAgain(client: Client): Promise<void> {
    if (client.lastRead) await this.#read("conditional", client, client.lastRead);
  }

  async #read(kind: string, client: Client, read: Pick<Read, "path" | "after"> & Partial<Read>) {
    const startedAt = this.#responses;
    const { path, after, etag, body: earlier = "" } = read;
    const sent = client.send({ path, headers: etag === undefined ? [] : [["If-None-Match", etag]] });
    const response = await this.#send(kind, sent, 200, ...(etag === undefined ? [] : [304]));
    if (response === undefined) return;
    const body = response.status === 304 ? earlier : response.body;
    client.lastRead = { path, after, etag: response.headers["etag"] ?? "", body };
    const seen = new Map(
      [...body.matchAll(/"id":(\d+),"name":"(\d+)","categoryId":\d+,"status":"(\w+)"/g)].map(
        ([, id, name, status]) => [Number(id), { version: Number(name), isOrdered: status === "pending" }],
      ),
    );
    const ids = [...seen.keys()];
    this.#check(ids.length > 0 || after !== undefined, () => `${path} is ${body}`);
    const last = ids.length === PAGE || after === undefined ? (ids.at(-1) ?? 0) : Infinity;
    const first = after === undefined ? last : after + 1;
    for (let id = first; id <= Math.min(last, this.#newest); id++) {
      const known = this.#pets.get(id)?.knownAt(startedAt);
      const found = seen.get(id);
      const text = () => `${path} (${response.status}): pet ${id} is ${JSON.stringify([known, found])}`;
      if (known)
        this.#check(
          found !== undefined && found.version >= known.version && (found.isOrdered || !known.isOrdered),
          text,
        );
    }
    for (const [id, { version, isOrdered }] of seen) {
      const pet = this.#pet(id);
      this.#check(
        version <= pet.updates && (!isOrdered || pet.orders > 0),
        () => `${path}: pet ${id} is early`,
      );
      pet.learn(this.#responses, version, isOrdered);
    }
  }

  /** Checks the final contents of the database. */
  judge({ pets, doubled, ordered }: Contents): void {
    const stored = new Map(pets.map((row) => [Number(row.id), row]));
    for (const { id, known } of this.#pets.values()) {
      const [row, last] = [stored.get(id), known.at(-1)];
      const isKept = row && last && Number(row.name) >= last.version;
      this.#check(
        isKept === true && (!last?.isOrdered || row?.status === "pending"),
        () => `pet ${id} is lost`,
      );
    }
    this.#check(doubled.length === 0, () => `${doubled.length} creates were done twice`);
    this.#check(ordered.length === 0, () => `${ordered.length} pets were ordered twice`);
  }
}

/**
 * A client that uses all servers at random. If a server has closed a connection after a response, it opens a new one.
 */
class Client {
  lastRead: Read | undefined;
  readonly #connections = new Map<number, HttpConnection>();

  constructor(
    private readonly ports: readonly number[],
    private readonly key: string,
    private readonly random: Random,
  ) {}

  server(): number {
    return this.random.below(this.ports.length);
  }

  async send({ headers = [], ...request }: HttpRequest): Promise<HttpResponse> {
    const server = this.server();
    const open = this.#connections.get(server);
    const connection = open?.isOpen ? open : await HttpConnection.open(this.ports[server] ?? 0);
    this.#connections.set(server, connection);
    return connection.send({ ...request, headers: [["Authorization", `Bearer ${this.key}`], ...headers] });
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
  }

  post(path: string, body: string, ...others: Header[]): Promise<HttpResponse> {
    return this.send({
      method: "POST",
      path,
      headers: [["Content-Type", "application/json"], ...others],
      body,
    });
  }
}

/** Kills connections, and returns how many. */
async function killConnections(sql: SQL, random: Random, isOver: () => boolean): Promise<number> {
  let killed = 0;
  while (!isOver()) {
    await Bun.sleep(random.below(MAX_KILL_EVERY_MS));
    const rows = await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name LIKE 'petstore%' AND datname = current_database() ORDER BY random() LIMIT 1`;
    killed += rows.length;
  }
  return killed;
}

const SELECT_PETS = "SELECT id, name, status FROM pets";
const SELECT_DOUBLED = "SELECT category_id FROM pets GROUP BY category_id HAVING count(*) > 1";
const SELECT_ORDERED = "SELECT pet_id FROM orders GROUP BY pet_id HAVING count(*) > 1";

/** Sends requests of many clients to three servers, whose connections to PostgreSQL are killed. */
export async function checkHistory(options: HistoryOptions) {
  const databaseUrl = await postgresUrl();
  const storage = ["--database-url", databaseUrl];
  const fleet = await Fleet.start({ size: SERVERS, storage, flags: adminFlags(TOKEN) });
  await using sql = new SQL(databaseUrl, { max: 1 });
  return await play(fleet, options, {
    kill: (isOver) => killConnections(sql, new Random(options.seed + 1), isOver),
    async contents() {
      await sql.unsafe("SET search_path = production");
      const [pets, doubled, ordered] = [SELECT_PETS, SELECT_DOUBLED, SELECT_ORDERED].map((query) =>
        sql.unsafe(query),
      );
      return { pets: await pets, doubled: await doubled, ordered: await ordered };
    },
  });
}

/** Sends requests of many clients to a server on SQLite, which is killed and started again. */
export async function checkSqliteHistory(options: HistoryOptions) {
  const data = temporaryDirectory("history");
  const slowSync = compileSlowSync();
  const variables = typeof slowSync === "string" ? {} : slowSync(SYNC_MS);
  const under = ["env", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
  const storage = ["--data", data];
  const fleet = await Fleet.start({ size: 1, storage, flags: adminFlags(TOKEN), under: () => under });
  return play(fleet, options, {
    kill: (isOver) => killServer(fleet, new Random(options.seed + 1), isOver),
    async contents() {
      using database = new Database(join(data, "production.db"), { readonly: true });
      const select = <Row>(query: string) => database.query<Row, []>(query).all();
      return {
        pets: select<Contents["pets"][number]>(SELECT_PETS),
        doubled: select(SELECT_DOUBLED),
        ordered: select(SELECT_ORDERED),
      };
    },
  });
}

/** Kills the server and starts it again. Returns how often. */
async function killServer(fleet: Fleet, random: Random, isOver: () => boolean): Promise<number> {
  let killed = 0;
  while (!isOver()) {
    await Bun.sleep(random.below(MAX_SERVER_LIFE_MS));
    await fleet.stopServer(0, "SIGKILL");
    await fleet.startServer(0);
    killed++;
  }
  return killed;
}

interface Faults {
  /** Kills until it is over, and returns how often. */
  kill(isOver: () => boolean): Promise<number>;
  contents(): Promise<Contents>;
}

async function play(fleet: Fleet, options: HistoryOptions, { kill, contents }: Faults) {
  const history = new History(fleet, (await fleet.createKey()).key, options);
  const startedAt = performance.now();
  let isOver = false;
  const killing = kill(() => isOver);
  await history.play().finally(() => (isOver = true));
  const kills = await killing;
  const seconds = (performance.now() - startedAt) / 1_000;
  history.judge(await contents());
  await fleet.stop();
  const { problems, kinds, errors, unanswered, count } = history;
  const unavailable = errors.length;
  return { requests: count, kinds: countsOf(kinds), unavailable, unanswered, kills, seconds, problems };
}

const HELP = `Usage: npx bun trials/faults/history.ts [OPTIONS]

Sends requests of ${CLIENTS} clients to ${SERVERS} servers on PostgreSQL: creates, orders, updates, lists, gets and
conditional requests, while connections to PostgreSQL are killed at random. With --sqlite it is one server on SQLite, which
is killed and starts again. No acknowledged write may be missing in a later read on any server, no read may go back, no pet
may be ordered twice, identifiers must grow, and 304 must be about what is current. Exits with 1 otherwise.

  --sqlite       One server on SQLite instead
  --requests N   Number of requests (default: 100000)
  --seed N       For the choice of requests (default: 1)
  --help         Show this
`;

if (import.meta.main)
  await runCommand({
    name: "faults/history",
    help: HELP,
    flags: { sqlite: isGiven, requests: integer(100_000, 10_000_000), seed: integer(1, 2 ** 31) },
    maxMinutes: 30,
    async main({ sqlite, ...options }) {
      const check = sqlite ? checkSqliteHistory : checkHistory;
      const { requests, kinds, unavailable, unanswered, kills, seconds, problems } = await check(options);
      const list = Object.entries(kinds).map(([kind, count]) => `${formatCount(count)} × ${kind}`);
      process.stdout.write(`${formatCount(requests)} requests in ${seconds.toFixed(1)} s: ${list.join(", ")}
${kills} ${sqlite ? "servers" : "connections"} killed, ${formatCount(unavailable)} responses of 503, ${formatCount(unanswered)} without a response
${problems.length === 0 ? "passed" : `FAILED\n${problems.join("\n")}`}\n`);
      return problems.length === 0 ? 0 : 1;
    },
  });
