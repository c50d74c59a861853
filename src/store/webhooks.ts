import { withoutNulls } from "../domain/fields.ts";
import type { WebhookStore } from "../domain/ports/webhooks.ts";
import type { WaitingEntries, WebhookState } from "../domain/webhooks.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { rowsOf, type SqlDatabase } from "./sql/steps.ts";
import { jsonArray } from "./sql/values.ts";

interface WebhookRow {
  readonly source: string;
  readonly position: bigint;
  readonly server: string | null;
  readonly beat: bigint;
  /** A JSON array. */
  readonly deliveries: string;
}

const OPEN = `INSERT INTO webhook (sole, source, position)
  SELECT 1, ?, coalesce((SELECT max(id) - 1 FROM audit WHERE action = 'data.restored' AND at >= ?), max(id), 0)
  FROM audit WHERE TRUE ON CONFLICT (sole) DO NOTHING`;
const SELECT = "SELECT source, position, server, beat, deliveries FROM webhook";
const TAKE = `UPDATE webhook SET server = ?, beat = beat + 1
  WHERE beat = ? AND coalesce(server, '') = ? RETURNING sole`;
const SAVE = `UPDATE webhook SET position = ?, deliveries = ?, beat = beat + 1
  WHERE server = ? AND beat = ? RETURNING sole`;
const RELEASE = "UPDATE webhook SET server = NULL WHERE server = ?";

/** SQLite takes 0.5 ms for them, in which requests wait. */
const MAX_COUNTED = 1_000;

/** One row, which the server that delivers changes. */
export class SqlWebhookStore implements WebhookStore {
  constructor(private readonly database: SqlDatabase) {}

  async openWebhook(source: string, restoredSince = Number.MAX_SAFE_INTEGER): Promise<WebhookState> {
    const saved = await this.readWebhook();
    if (saved !== undefined) return saved;
    await this.database.write(() => rowsOf(OPEN, source, restoredSince));
    const state = await this.readWebhook();
    if (state === undefined) throw new Error("the position of the webhook was deleted");
    return state;
  }

  readWebhook(): Awaitable<WebhookState | undefined> {
    return this.database.read(function* () {
      const [row] = yield* rowsOf<WebhookRow>(SELECT);
      return row && stateOf(row);
    });
  }

  async takeWebhook(server: string, state: WebhookState): Promise<WebhookState | undefined> {
    const { beat, server: before = "" } = state;
    return this.#update({ ...state, server }, TAKE, server, beat, before);
  }

  async saveWebhook(server: string, state: WebhookState): Promise<WebhookState | undefined> {
    const { position, deliveries, beat } = state;
    return this.#update({ ...state, server }, SAVE, position, JSON.stringify(deliveries), server, beat);
  }

  async releaseWebhook(server: string): Promise<void> {
    await this.database.write(() => rowsOf(RELEASE, server));
  }

  countWaiting(position: bigint, actions: ReadonlySet<string> | undefined): Awaitable<WaitingEntries> {
    const selected = actions ? ` WHERE ${this.database.dialect.isOneOf("action", "?2", "text")}` : "";
    const sql = `SELECT count(*) AS count, min(at) AS "oldestAt" FROM
      (SELECT at, action FROM audit WHERE id > ?1 ORDER BY id LIMIT ${MAX_COUNTED}) AS waiting${selected}`;
    return this.database.read(function* () {
      const values = actions ? [position, jsonArray([...actions])] : [position];
      const [row] = yield* rowsOf<{ count: bigint; oldestAt: bigint | null }>(sql, ...values);
      const { count = 0n, oldestAt = null } = row ?? {};
      return { count: Number(count), ...(oldestAt !== null && { oldestAt: Number(oldestAt) }) };
    });
  }

  /** Returns the state as it is saved; undefined if it was another one before. */
  #update(state: WebhookState, ...statement: Parameters<typeof rowsOf>): Promise<WebhookState | undefined> {
    return this.database.write(function* () {
      const { length } = yield* rowsOf(...statement);
      return length > 0 ? { ...state, beat: state.beat + 1 } : undefined;
    });
  }
}

function stateOf({ beat, deliveries, ...row }: WebhookRow): WebhookState {
  const parsed: WebhookState["deliveries"] = JSON.parse(deliveries);
  return withoutNulls({ ...row, beat: Number(beat), deliveries: parsed });
}
