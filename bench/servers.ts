import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { contestant, type ContestantId, type PeerId } from "./contestants.ts";
import { nginxConfig } from "./nginx.ts";
import type { Running } from "./processes.ts";
import { exchange } from "./raw.ts";
import type { Dialect } from "./requests.ts";
import { copyDatabase } from "./seed.ts";
import { PETSTORE, serveArguments, type Setting } from "./stage.ts";
import type { WorkId } from "./work.ts";

/** A contestant that answers. */
export interface Server extends Running {
  readonly id: ContestantId;
  readonly dialect: Dialect;
  originFor(work: WorkId): string;
  /** Where creates end up, when anywhere. */
  readonly database?: string;
  /** From spawning the process to its first right answer. */
  readonly startMs: number;
}

type Launched = Omit<Server, "startMs">;

const START_TIMEOUT_MS = 20_000;

export async function startServer(id: ContestantId, setting: Setting): Promise<Server> {
  const startedAt = performance.now();
  const launched = await launch(id, setting);
  await firstAnswer(launched, setting, startedAt);
  return { ...launched, startMs: performance.now() - startedAt };
}

function launch(id: ContestantId, setting: Setting): Promise<Launched> | Launched {
  switch (id) {
    case "ours":
      return launchPetstore(setting);
    case "bare":
    case "socket":
      return launchLimit(id, setting);
    case "nginx":
      return launchNginx(setting);
    default:
      return launchPeer(id, setting);
  }
}

function launchPetstore({ stage, data }: Setting): Launched {
  const [port = 0] = freePorts(1);
  const running = stage.processes.start([...PETSTORE, ...serveArguments(data, port)], {
    name: `petstore-${data.animals}`,
    core: stage.cores?.server,
  });
  const dialect = { base: "/v1", cursors: "opaque", keys: data.keys } as const;
  return { ...running, id: "ours", dialect, originFor: () => origin(port), database: data.database };
}

async function launchLimit(id: "bare" | "socket", { stage, data, replies }: Setting): Promise<Launched> {
  const path = join(stage.folder, "replies.json");
  writeFileSync(path, JSON.stringify(replies));
  const running = stage.processes.start([process.execPath, join(import.meta.dir, `${id}.ts`), path], {
    name: id,
    core: stage.cores?.server,
    stdout: "pipe",
  });
  const ports = await firstLine(running);
  const dialect = { base: "/v1", cursors: "opaque", keys: data.keys } as const;
  return { ...running, id, dialect, originFor: (work) => origin(ports[work] ?? 0) };
}

function launchNginx({ stage, data, replies }: Setting): Launched {
  const works = Object.keys(replies);
  const free = freePorts(works.length);
  const ports = Object.fromEntries(works.map((work, i) => [work, free[i] ?? 0]));
  const folder = join(stage.folder, "nginx");
  const config = join(folder, "nginx.conf");
  mkdirSync(folder, { recursive: true });
  writeFileSync(config, nginxConfig(folder, replies, ports));
  const running = stage.processes.start(["nginx", "-p", folder, "-c", config, "-e", "stderr"], {
    name: "nginx",
    core: stage.cores?.server,
  });
  const dialect = { base: "/v1", cursors: "opaque", keys: data.keys } as const;
  return { ...running, id: "nginx", dialect, originFor: (work) => origin(ports[work] ?? 0) };
}

const MODULES = join(import.meta.dir, "node_modules");
const NODE = join(MODULES, `node-linux-${process.arch}`, "bin/node");

function launchPeer(id: PeerId, { stage, data }: Setting): Launched {
  const [port = 0] = freePorts(1);
  const database = join(stage.folder, `${id}.db`);
  if (id !== "prism" && !existsSync(database)) copyDatabase(data.database, database);
  const script = join(import.meta.dir, "peers", `${id}.ts`);
  const own = [script, String(port), database];
  const commands: Record<PeerId, () => string[]> = {
    express: () => [NODE, ...own],
    fastify: () => [NODE, ...own],
    hono: () => [process.execPath, ...own],
    elysia: () => [process.execPath, ...own],
    prism: () => [NODE, ...prismArguments(stage.folder, port)],
  };
  const running = stage.processes.start(commands[id](), { name: id, core: stage.cores?.server });
  const base = id === "prism" ? "" : "/v1";
  const dialect = { base, cursors: "plain", keys: data.keys } as const;
  const kept = id === "prism" ? {} : { database };
  return { ...running, id, dialect, originFor: () => origin(port), ...kept };
}

function prismArguments(folder: string, port: number): string[] {
  const document = join(folder, "openapi.json");
  if (!existsSync(document)) writeFileSync(document, Bun.spawnSync([...PETSTORE, "openapi"]).stdout);
  const script = join(MODULES, "@stoplight/prism-cli/dist/index.js");
  const flags = "--multiprocess false --cors false --verboseLevel silent".split(" ");
  return [script, "mock", document, "--port", String(port), ...flags];
}

/** Asked every millisecond. A limit is asked for whatever it repeats first; everyone else for a page. */
async function firstAnswer(server: Launched, { stage, replies }: Setting, startedAt: number): Promise<void> {
  const work = (Object.keys(replies)[0] ?? "list") as WorkId;
  const { base, keys } = server.dialect;
  const request = `GET ${base}/pets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${keys.open}\r\n\r\n`;
  const isLimit = contestant(server.id).kind === "limit";
  for (;;) {
    const reply = await exchange(server.originFor(work), request).catch(() => undefined);
    if (reply !== undefined && (isLimit || reply.status === 200)) return;
    if (server.child.exitCode !== null || performance.now() - startedAt > START_TIMEOUT_MS) {
      await stage.processes.stop(server);
      throw new Error(`${server.id} did not start: ${server.complaint()}`);
    }
    await Bun.sleep(1);
  }
}

async function firstLine({ child }: Running): Promise<Record<string, number>> {
  if (!(child.stdout instanceof ReadableStream)) return {};
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return JSON.parse(text);
}

/** Held all at once, so that they differ, and let go for the servers to take. */
function freePorts(count: number): number[] {
  const held = Array.from({ length: count }, () =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  );
  const ports = held.map(({ port }) => port);
  for (const listener of held) listener.stop(true);
  return ports;
}

function origin(port: number): string {
  return `http://127.0.0.1:${port}`;
}
