import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { MAX_REASON_LENGTH } from "../../domain/audit.ts";
import { printable } from "../../text/formatting.ts";
import { refresh } from "../polling.ts";
import { announce, consoleState } from "../state.ts";
import { TextField } from "./fields.tsx";
import { Form } from "./forms.tsx";
import {
  closeDialog,
  DialogButton,
  type DialogButtonProps,
  Modal,
  type ModalProps,
  openDialog,
} from "./modal.tsx";
import { type IssuedSecret, SecretDialog } from "./secret-dialog.tsx";

/** A longer name is confirmed by the identifier: nobody types a thousand characters. */
const MAX_TYPED_NAME = 40;

export interface ActionProps extends Pick<ModalProps, "title" | "name"> {
  /** Replaces a name that is hard to type: "key 7". */
  readonly shortName?: string;
  /** Whether it cannot be undone, so that the name has to be typed. */
  readonly isFinal?: boolean;
  /** What will happen to clients, and when. */
  readonly text?: ComponentChildren;
  /** The text of the button that runs the action; by default the title and the name. */
  readonly submitText?: string;
  /** The button that does nothing: "Cancel" by default. */
  readonly cancelText?: string | undefined;
  /** Whether there is something to do: a form that changes something waits for a change. */
  readonly isReady?: boolean;
  /** Whether a reason can be given, which `run` gets. */
  readonly asksReason?: boolean;
  /** A secret that comes of it is shown, once. */
  readonly run: (given: { readonly reason?: string }) => Promise<IssuedSecret | object | undefined>;
  /** What was done, said before the name when the dialog has closed: "Revoked". */
  readonly done?: string;
  readonly children?: ComponentChildren;
}

/** The button that opened the dialog may be gone: a ban that has ended cannot be ended again. */
function focusHeadingIfLost(): void {
  if (document.activeElement === document.body) document.querySelector<HTMLElement>("h1")?.focus();
}

/** Asks once before something is done. */
export function ActionDialog(action: ActionProps) {
  const { title, name = "", shortName = "", isFinal = false, asksReason = false, run, done } = action;
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const isSeen = name === printable(name.trim()) && !/\s\s/.test(name);
  const isTypeable = isSeen && [...name].length <= MAX_TYPED_NAME;
  const words = isTypeable ? name : shortName;
  const submitText = action.submitText ?? (
    <span>
      {title} <bdi>{words}</bdi>
    </span>
  );
  async function onSubmit() {
    const own = consoleState.dialog;
    const result = await run(reason.trim() === "" ? {} : { reason: reason.trim() });
    if (result !== undefined && "noun" in result)
      openDialog(() => <SecretDialog key={result.secret} {...result} />);
    // Somebody may have cancelled it, and opened another one.
    else if (consoleState.dialog === own) closeDialog();
    if (done !== undefined) announce(`${done} ${words}.`);
    await refresh();
    requestAnimationFrame(focusHeadingIfLost);
  }
  const isReady = isFinal ? typed.trim() === words : (action.isReady ?? true);
  return (
    <Modal title={title} name={name} onCancel={closeDialog}>
      <Form
        {...{ submitText, onSubmit, isReady }}
        onCancel={closeDialog}
        cancelText={action.cancelText}
        isDangerous={isFinal}
      >
        {action.text && <p>{action.text}</p>}
        {action.children}
        {asksReason && (
          <TextField
            label="Reason"
            field="reason"
            hint="Optional, for the audit trail, such as: leaked in a repository"
            maxLength={MAX_REASON_LENGTH}
            value={reason}
            onInput={setReason}
          />
        )}
        {isFinal && (
          <TextField
            label="Confirm"
            hint={
              <>
                Type <bdi class="mono wrap">{words}</bdi> to confirm.
              </>
            }
            autofocus
            value={typed}
            onInput={setTyped}
          />
        )}
      </Form>
    </Modal>
  );
}

interface ActionButtonProps extends ActionProps, Pick<DialogButtonProps, "class" | "disabled"> {
  /** The label; by default the title. */
  readonly label?: string;
}

export function ActionButton({ class: tone, disabled, label, ...action }: ActionButtonProps) {
  return (
    <DialogButton class={tone} disabled={disabled} dialog={() => <ActionDialog {...action} />}>
      {label ?? action.title}
    </DialogButton>
  );
}
