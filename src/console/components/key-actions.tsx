import { useState } from "preact/hooks";
import { call, type Key } from "../admin-api.ts";
import { announce } from "../notices.ts";
import { refresh } from "../polling.ts";
import type { Session } from "../session.ts";
import { ConfirmDialog, confirmationOf, TypedName } from "./confirm-dialog.tsx";
import { Dialog } from "./dialog.tsx";
import { Choices, Problem, useAction } from "./form.tsx";
import { type NewSecret, SecretDialog } from "./secret-dialog.tsx";
import { TimeAgo } from "./time.tsx";

export type KeyAction = "roll" | "revoke" | "unban";

interface KeyDialogProps {
  readonly apiKey: Key;
  readonly onClose: () => void;
}

interface KeyActionDialogProps extends KeyDialogProps {
  readonly action: KeyAction;
  readonly session: Session;
}

/** What the actions on a key ask before they are done. */
export function KeyActionDialog({ action, session, ...props }: KeyActionDialogProps) {
  if (action === "revoke") return <RevokeDialog {...props} />;
  if (action === "unban") return <UnbanDialog {...props} />;
  return <RollDialog {...props} publicUrl={session.server?.publicUrl ?? ""} />;
}

function namesOf({ id, name }: Key) {
  return { name, shortName: `key ${id}` };
}

/** Whether an action makes sense for the key as it is. */
export function canDo(action: KeyAction, { state }: Key): boolean {
  if (action === "unban") return state === "banned";
  return action === "roll" ? state === "active" || state === "banned" : state !== "revoked";
}

function RevokeDialog({ apiKey, onClose }: KeyDialogProps) {
  async function revoke() {
    await call("revokeKey", { id: apiKey.id });
    onClose();
    announce(`Revoked ${confirmationOf(namesOf(apiKey))}.`);
    await refresh();
  }
  return (
    <ConfirmDialog action="Revoke" {...namesOf(apiKey)} onConfirm={revoke} onClose={onClose}>
      <p>
        Requests with this key fail with 401 within one second, on every server. A revoked key never works
        again: clients need a new one.
      </p>
      {apiKey.lastUsedAt !== null && (
        <p>
          It was last used <TimeAgo at={apiKey.lastUsedAt} />.
        </p>
      )}
    </ConfirmDialog>
  );
}

function UnbanDialog({ apiKey, onClose }: KeyDialogProps) {
  const { isRunning, problem, run } = useAction();
  async function unban() {
    await call("unbanKey", { id: apiKey.id });
    onClose();
    announce(`Ended the ban of ${confirmationOf(namesOf(apiKey))}.`);
    await refresh();
  }
  const title = (
    <span class="clamp">
      Unban <bdi>{apiKey.name}</bdi>
    </span>
  );
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="form">
        <p>
          The ban ends within one second instead of <TimeAgo at={apiKey.bannedUntil} />. Strikes are cleared,
          and the next ban has the shortest length again. Used requests stay counted.
        </p>
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="primary" disabled={isRunning} onClick={() => void run(unban)}>
            Unban
          </button>
        </div>
      </div>
    </Dialog>
  );
}

const HOUR = 3_600;
const OVERLAPS = [
  { value: "0", text: "None", hint: "earlier secrets fail within one second" },
  { value: `${HOUR}`, text: "1 hour" },
  { value: `${24 * HOUR}`, text: "24 hours" },
  { value: `${7 * 24 * HOUR}`, text: "7 days" },
  { value: `${30 * 24 * HOUR}`, text: "30 days" },
] as const;
type Overlap = (typeof OVERLAPS)[number]["value"];

function RollDialog({ apiKey, publicUrl, onClose }: KeyDialogProps & { readonly publicUrl: string }) {
  const [overlap, setOverlap] = useState<Overlap>(`${24 * HOUR}`);
  const [typed, setTyped] = useState("");
  const [secret, setSecret] = useState<NewSecret>();
  const { isRunning, problem, run } = useAction();
  const expected = confirmationOf(namesOf(apiKey));
  const isConfirmed = overlap !== "0" || typed.trim() === expected;

  if (secret !== undefined) return <SecretDialog {...secret} onClose={onClose} />;

  async function roll() {
    const result = await call("rollKey", { id: apiKey.id, body: { overlapSeconds: Number(overlap) } });
    const overlapEndsAt = overlap === "0" ? {} : { overlapEndsAt: result.overlapEndsAt };
    setSecret({ name: apiKey.name, secret: result.secret, publicUrl, ...overlapEndsAt });
    await refresh();
  }
  const title = (
    <span class="clamp">
      Roll the secret of <bdi>{apiKey.name}</bdi>
    </span>
  );
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isConfirmed) void run(roll);
        }}
      >
        <p>
          You get a new secret for this key. Plan, usage and orders stay. Clients have to switch during the
          overlap.
        </p>
        <Choices
          label="Earlier secrets still work for"
          value={overlap}
          options={OVERLAPS}
          onChange={setOverlap}
        />
        {overlap === "0" && <TypedName expected={expected} typed={typed} onInput={setTyped} />}
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={overlap === "0" ? "primary danger" : "primary"}
            disabled={!isConfirmed || isRunning}
          >
            Roll secret
          </button>
        </div>
      </form>
    </Dialog>
  );
}
