import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { Field, Problem, useAction } from "./form.tsx";

/** What a dangerous action is done to. */
export interface Named {
  readonly name: string;
  /** To type instead of a long name: "key 7". */
  readonly shortName: string;
}

/** A longer name is confirmed by the identifier: nobody types a thousand characters. */
const MAX_TYPED_NAME = 40;

/** The words that confirm an action. */
export function confirmationOf({ name, shortName }: Named): string {
  const isTypeable = [...name].length <= MAX_TYPED_NAME && name === name.trim() && !/\s\s/.test(name);
  return isTypeable ? name : shortName;
}

interface TypedNameProps {
  readonly expected: string;
  readonly typed: string;
  readonly onInput: (typed: string) => void;
}

export function TypedName({ expected, typed, onInput }: TypedNameProps) {
  const hint = (
    <>
      Type <bdi class="mono wrap">{expected}</bdi> to confirm.
    </>
  );
  return (
    <Field label="Confirm" hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface ConfirmDialogProps extends Named {
  /** What is done: "Revoke". The name follows. */
  readonly action: string;
  /** What will happen to clients, and when. */
  readonly children: ComponentChildren;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** A dangerous action is confirmed by typing the name of what it is done to. */
export function ConfirmDialog({ action, name, shortName, children, onConfirm, onClose }: ConfirmDialogProps) {
  const [typed, setTyped] = useState("");
  const { isRunning, problem, run } = useAction();
  const expected = confirmationOf({ name, shortName });
  const isConfirmed = typed.trim() === expected;
  const title = (
    <span class="clamp">
      {action} <bdi>{name}</bdi>
    </span>
  );
  return (
    <Dialog onClose={onClose} title={title}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isConfirmed) void run(onConfirm);
        }}
      >
        {children}
        <TypedName expected={expected} typed={typed} onInput={setTyped} />
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary danger" disabled={!isConfirmed || isRunning}>
            <span>
              {action} <bdi>{expected}</bdi>
            </span>
          </button>
        </div>
      </form>
    </Dialog>
  );
}
