import { Child } from "../harness/child.ts";
import type { Fleet } from "../harness/fleet.ts";
import { HttpConnection } from "../harness/http-connection.ts";
import type { Findings } from "./scenario.ts";

interface Slot {
  /** The time in milliseconds since 1970. */
  readonly at: number;
  allowed: number;
  unavailable: number;
  /** Responses of 503 without Retry-After, other statuses, and connections that broke. */
  wrong: number;
}

const SLOT_MS = 100;
const CONNECTIONS = 512;
const KEYS = 8;
/** How long requests wait for Valkey and for the database that takes over. */
const NOTICED_WITHIN_MS = 1_000;
const RECOVERED_WITHIN_MS = 2_000;
const BASE_MS = 2_000;

/**
 * Sends as many reads as the machine holds until the end of a scenario, from a process of its own, and judges the
 * responses: reads go on in the outage of Valkey, what is rejected is 503 with Retry-After, and then all is as before.
 */
export async function underFullLoad(fleet: Fleet) {
  const keys: string[] = [];
  while (keys.length < KEYS) keys.push((await fleet.createKey()).key);
  const given = JSON.stringify([fleet.ports, keys]);
  let written = "[]";
  const child = new Child([process.execPath, import.meta.path, given], {
    onLine: (line) => (written = line),
  });
  return {
    async finish(beganAt: number, endedAt: number): Promise<Findings> {
      await child.stop();
      const { timeOrigin } = performance;
      return judge(JSON.parse(written), { beganAt: timeOrigin + beganAt, endedAt: timeOrigin + endedAt });
    },
  };
}

function judge(slots: readonly Slot[], { beganAt, endedAt }: { beganAt: number; endedAt: number }): Findings {
  const within = (from: number, until: number) => {
    const chosen = slots.filter(({ at }) => at >= from && at < until);
    const sum = (name: "allowed" | "unavailable") => chosen.reduce((total, slot) => total + slot[name], 0);
    return {
      perSecond: Math.round(sum("allowed") / ((until - from) / 1_000)),
      unavailable: sum("unavailable"),
    };
  };
  const before = within(beganAt - BASE_MS, beganAt);
  const during = within(beganAt + NOTICED_WITHIN_MS, endedAt);
  const after = within(endedAt + RECOVERED_WITHIN_MS, slots.at(-1)?.at ?? 0);
  const wrong = slots.reduce((total, slot) => total + slot.wrong, 0);
  const rates = [before, during, after].map((each) => `${each.perSecond} and ${each.unavailable} × 503`);
  const note = `reads a second before, in and after the outage: ${rates.join(", ")}; ${wrong} other responses`;
  const isKept =
    wrong + before.unavailable + after.unavailable === 0 &&
    during.perSecond > before.perSecond / 4 &&
    after.perSecond > before.perSecond / 2;
  return { notes: [note], problems: isKept ? [] : [note] };
}

/** Sends one request after the other. */
async function send(port: number, key: string, slotNow: () => Slot, isOver: () => boolean): Promise<void> {
  const request = { path: "/v1/pets?limit=20", headers: [["Authorization", `Bearer ${key}`]] } as const;
  let connection = await HttpConnection.open(port);
  while (!isOver()) {
    const response = await connection.send(request).catch(() => undefined);
    const slot = slotNow();
    if (response?.status === 200) slot.allowed++;
    else if (response?.status === 503 && Number(response.headers["retry-after"]) >= 1) slot.unavailable++;
    else slot.wrong++;
    if (!connection.isOpen) connection = await HttpConnection.open(port);
  }
  connection.close();
}

if (import.meta.main) {
  const [ports, keys]: [number[], string[]] = JSON.parse(process.argv[2] ?? "[[],[]]");
  const slots: Slot[] = [];
  const slotNow = () => {
    const at = Date.now() - (Date.now() % SLOT_MS);
    const last = slots.at(-1);
    if (last?.at === at) return last;
    const slot = { at, allowed: 0, unavailable: 0, wrong: 0 };
    slots.push(slot);
    return slot;
  };
  let isOver = false;
  process.on("SIGTERM", () => (isOver = true));
  const clients = Array.from({ length: CONNECTIONS }, (_, i) =>
    send(ports[i % ports.length] ?? 0, keys[i % keys.length] ?? "", slotNow, () => isOver),
  );
  await Promise.all(clients);
  process.stdout.write(`${JSON.stringify(slots)}\n`);
}
