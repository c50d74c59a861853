import { SQL } from "bun";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Child } from "./child.ts";
import { cleanUpAtExit, temporaryDirectory } from "./cleanup.ts";
import { unprivilegedUser } from "./postgres.ts";
import { freezeTree, isRunning, killTree, thawTree } from "./processes.ts";
import { ETCD, executable, HAPROXY, PATRONI, POSTGRES } from "./programs.ts";

const CONFIGURATIONS = join(import.meta.dir, "../../deploy/patroni");
const NODES = ["db1", "db2", "db3"] as const;
const USER = "petstore";
const ADMINISTRATION = { user: "postgres", database: "postgres" };
const ASK_EVERY_MS = 50;
/** Longer than the time to live of the leader's key, with the election. */
const TIMEOUT_MS = 90_000;

interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}

/** etcd and three PostgreSQL servers with Patroni, and HAProxy in front, with the configuration in deploy/. */
export class PatroniCluster {
  readonly nodes: readonly Node[];
  leader: Node;

  private constructor(
    readonly network: string,
    private readonly etcd: Child,
    private readonly proxy: Child,
  ) {
    this.nodes = NODES.map((name, i) => new Node(name, network, i + 1));
    [this.leader] = this.nodes as readonly [Node];
  }

  static async start(): Promise<PatroniCluster> {
    const network = anyNetwork();
    const cluster = new PatroniCluster(network, await startEtcd(network), startProxy(network));
    for (const node of cluster.nodes) node.start();
    await cluster.untilComplete();
    await using sql = new SQL(cluster.leader.url(ADMINISTRATION), { max: 1 });
    await sql.unsafe(`CREATE ROLE ${USER} LOGIN PASSWORD '${USER}'`);
    return cluster;
  }

  async createDatabase(name: string): Promise<void> {
    await using sql = new SQL(this.leader.url(ADMINISTRATION), { max: 1 });
    await sql.unsafe(`CREATE DATABASE ${name} OWNER ${USER} ENCODING 'UTF8' TEMPLATE template0`);
  }

  url(through: "all servers" | "proxy", database: string): string {
    const hosts = through === "proxy" ? [`${this.network}.20:5432`] : this.nodes.map(({ host }) => host);
    return urlOf(hosts.join(","), { database });
  }

  /** Resolves when a server other than `before` is the leader and accepts writes. */
  async untilReplaced(before: Node): Promise<void> {
    this.leader = await this.#until("another server is the leader", async () => {
      // One that is cut off does not respond.
      for (const node of this.nodes)
        if (node !== before && (await node.isLeader().catch(() => false))) return node;
    });
  }

  /** Resolves when all servers run and one of them is the synchronous standby. */
  async untilComplete(): Promise<void> {
    await this.#until("three servers run", async () => {
      for (const node of this.nodes) if (await node.isLeader()) this.leader = node;
      const members = await this.leader.members();
      const roles = members.flatMap(({ role, state }) =>
        state === "running" || state === "streaming" ? role : [],
      );
      return roles.length === NODES.length && roles.includes("sync_standby") ? true : undefined;
    });
  }

  /** Resolves to the synchronous standby once it is another server than `before`. */
  async syncStandby(before?: Node): Promise<Node> {
    return await this.#until("another server is the synchronous standby", async () => {
      const name = (await this.leader.members()).find(({ role }) => role === "sync_standby")?.name;
      return this.nodes.find((node) => node.name === name && node !== before);
    });
  }

  async switchOver(): Promise<void> {
    const before = this.leader;
    const candidate = await this.syncStandby();
    const body = JSON.stringify({ leader: before.name, candidate: candidate.name });
    const response = await fetch(`${before.api}/switchover`, { method: "POST", body });
    if (!response.ok) throw new Error(`switchover: ${response.status} ${await response.text()}`);
    await this.untilReplaced(before);
  }

  /** Ends everything at once. */
  async discard(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    await Promise.all([this.proxy.stop(), this.etcd.stop("SIGKILL")]);
  }

  async #until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
    const deadline = performance.now() + TIMEOUT_MS;
    for (;;) {
      const found = await ask().catch(() => undefined);
      if (found !== undefined) return found;
      if (performance.now() > deadline) {
        const outputs = this.nodes.map(({ name, output }) => `${name}:\n${output.slice(-2_000)}`);
        throw new Error(`not within ${TIMEOUT_MS / 1_000} s: ${what}\n${outputs.join("\n")}`);
      }
      await Bun.sleep(ASK_EVERY_MS);
    }
  }
}

export class Node {
  readonly #directory: string;
  readonly #address: string;
  #patroni: Child | undefined;

  constructor(
    readonly name: string,
    private readonly network: string,
    index: number,
  ) {
    this.#address = `${network}.2${index}`;
    this.#directory = temporaryDirectory(name, unprivilegedUser());
    cleanUpAtExit({ pidFile: this.#pidFile, quit: "SIGQUIT" });
  }

  get host(): string {
    return `${this.#address}:5432`;
  }

  get api(): string {
    return `http://${this.#address}:8008`;
  }

  get output(): string {
    return this.#patroni?.output ?? "";
  }

  url(options: Access): string {
    return urlOf(this.host, options);
  }

  start(): void {
    const path = join(this.#directory, "patroni.yml");
    const text = configuration("patroni.yml", this.network, {
      "name: db1": `name: ${this.name}`,
      [`listen: ${this.network}.21:8008`]: `listen: ${this.#address}:8008`,
      [`connect_address: ${this.network}.21:8008`]: `connect_address: ${this.#address}:8008`,
      [`listen: ${this.network}.21:5432`]: `listen: ${this.#address}:5432`,
      [`connect_address: ${this.network}.21:5432`]: `connect_address: ${this.#address}:5432`,
      [`${this.network}.11:2379,${this.network}.12:2379,${this.network}.13:2379`]: `${this.network}.11:2379`,
      "/var/lib/postgresql/petstore": join(this.#directory, "data"),
      "/usr/lib/postgresql/15/bin": dirname(executable(POSTGRES)),
      // Sockets of its own, as on a machine of its own.
      "\npostgresql:\n": `\npostgresql:\n  parameters:\n    unix_socket_directories: ${this.#directory}\n`,
      "the-password-of-postgres": "postgres",
      "wal_keep_size: 1GB": "wal_keep_size: 256MB",
    });
    writeFileSync(path, text);
    chmodSync(path, 0o644);
    const env = { PATH: process.env.PATH, LC_ALL: "C", HOME: this.#directory };
    const user = unprivilegedUser();
    this.#patroni = new Child([executable(PATRONI), path], {
      cwd: this.#directory,
      env,
      user,
      ownSession: true,
      quit: "SIGTERM",
    });
    this.#patroni.unref();
  }

  /** Kills Patroni and PostgreSQL at once, as if the machine were lost. */
  async kill(): Promise<void> {
    await Promise.all(this.#pids.map(killTree));
  }

  /** Stops Patroni and PostgreSQL, as if nobody could reach the machine. */
  freeze(): void {
    for (const pid of this.#pids) freezeTree(pid);
  }

  thaw(): void {
    for (const pid of this.#pids) thawTree(pid);
  }

  async isLeader(): Promise<boolean> {
    if (!(await fetch(`${this.api}/primary`, { signal: AbortSignal.timeout(1_000) })).ok) return false;
    await using sql = new SQL(this.url(ADMINISTRATION), { max: 1, connectionTimeout: 2 });
    const [row] = await sql<{ is_standby: boolean }[]>`SELECT pg_is_in_recovery() AS is_standby`;
    return row?.is_standby === false;
  }

  async members(): Promise<readonly Member[]> {
    const response = await fetch(`${this.api}/cluster`, { signal: AbortSignal.timeout(1_000) });
    const { members } = (await response.json()) as { members: readonly Member[] };
    return members;
  }

  /**
   * The number of connections with which Petstore uses the server; undefined if PostgreSQL accepts none. Those that ask
   * the other servers for a promotion have no schema.
   */
  async connections(): Promise<number | undefined> {
    await using sql = new SQL(this.url(ADMINISTRATION), { max: 1, connectionTimeout: 2 });
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE application_name LIKE 'petstore production %'`.catch(() => []);
    return row?.count;
  }

  get #pidFile(): string {
    return join(this.#directory, "data", "postmaster.pid");
  }

  get #pids(): readonly number[] {
    return [this.#patroni?.pid, this.#postgresPid()].filter((pid) => pid !== undefined);
  }

  #postgresPid(): number | undefined {
    try {
      const pid = Number.parseInt(readFileSync(this.#pidFile, "utf8"), 10);
      return isRunning(pid) ? pid : undefined;
    } catch {
      return undefined;
    }
  }
}

const anyByte = () => 1 + Math.floor(Math.random() * 250);

/** A network on loopback that nobody else uses, so that the ports of the configuration are free in it. */
export const anyNetwork = () => `127.${anyByte()}.${anyByte()}`;

interface Access {
  readonly user?: string;
  readonly database: string;
}

/** Passwords are the names of users. */
function urlOf(hosts: string, { user = USER, database }: Access): string {
  return `postgres://${user}:${user}@${hosts}/${database}`;
}

/** A file of deploy/patroni with another network, and with texts replaced. */
function configuration(file: string, network: string, replacements: Readonly<Record<string, string>>) {
  let text = readFileSync(join(CONFIGURATIONS, file), "utf8").replaceAll("10.0.0.", `${network}.`);
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`deploy/patroni/${file} has no ${from} any more`);
    text = text.replace(from, to);
  }
  return text;
}

async function startEtcd(network: string): Promise<Child> {
  const [clients, peers] = [`http://${network}.11:2379`, `http://${network}.11:2380`];
  const directory = temporaryDirectory("etcd");
  mkdirSync(join(directory, "data"));
  const flags = {
    name: "etcd",
    "data-dir": join(directory, "data"),
    "listen-client-urls": clients,
    "advertise-client-urls": clients,
    "listen-peer-urls": peers,
    "initial-advertise-peer-urls": peers,
    "initial-cluster": `etcd=${peers}`,
    logger: "zap",
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = new Child([executable(ETCD), ...args], { cwd: directory, ownSession: true });
  child.unref();
  await child.line(/serving insecure client requests|serving client traffic/);
  return child;
}

/** Starts HAProxy with the configuration in deploy/. */
export function startProxy(network: string): Child {
  const path = join(temporaryDirectory("haproxy"), "haproxy.cfg");
  writeFileSync(path, configuration("haproxy.cfg", network, {}));
  const child = new Child([executable(HAPROXY), "-db", "-f", path], { ownSession: true });
  child.unref();
  return child;
}
