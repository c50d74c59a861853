import type { ComponentChildren, RefObject, VNode } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { MAX_REASON_LENGTH } from "../../domain/audit.ts";
import { curlCommand } from "../../text/curl.ts";
import { printable } from "../../text/formatting.ts";
import { COPY_TEXTS, copyText } from "../../pages/clipboard.ts";
import { capitalized } from "../../pages/format.ts";
import { refresh } from "../polling.ts";
import { navigate, useLeaveGuard } from "../router.ts";
import { announce, current, server, update } from "../state.ts";
import { Form, TextField } from "./forms.tsx";
import { LocalTime } from "./values.tsx";

/** Opens a dialog over the page, in place of the one before, until the page is left. */
export const openDialog = (dialog: () => VNode): void => update({ dialog });
export const closeDialog = (): void => update({ dialog: undefined });

interface DialogButtonProps {
  readonly dialog: () => VNode;
  readonly class?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly children: ComponentChildren;
}

export function DialogButton({ dialog, ...button }: DialogButtonProps) {
  return <button type="button" {...button} onClick={() => openDialog(dialog)} />;
}

interface ModalProps {
  readonly title: string;
  /** What it is about, after the title. */
  readonly name?: string | undefined;
  /** `wide` has room for what is copied; `palette` stays where it is, however high it gets. */
  readonly class?: "wide" | "palette-dialog";
  readonly children: ComponentChildren;
  readonly onCancel: () => void;
}

/**
 * A modal dialog. The browser keeps the focus inside, and Escape cancels it; afterwards the focus is where it was.
 * While the page to sign in is shown, it is closed.
 */
export function Modal({ title, name, onCancel, children, ...props }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const { isSignedIn } = current;
  useLayoutEffect(() => {
    if (isSignedIn) dialog.current?.showModal();
    return () => dialog.current?.close();
  }, [isSignedIn]);
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onCancel();
      }}
    >
      <h2 id={titleId} class="clamp">
        {title} {name && <bdi>{name}</bdi>}
      </h2>
      {children}
    </dialog>
  );
}

/** A longer name is confirmed by the identifier: nobody types a thousand characters. */
const MAX_TYPED_NAME = 40;

interface Action extends Pick<ModalProps, "title" | "name"> {
  /** Replaces a name that is hard to type: "key 7". */
  readonly shortName?: string;
  /** Whether it cannot be undone, so that the name has to be typed. */
  readonly isFinal?: boolean;
  /** What will happen to clients, and when. */
  readonly text?: ComponentChildren;
  /** By default the title and the name. */
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
export function ActionDialog(action: Action) {
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
    const own = current.dialog;
    const result = await run(reason.trim() === "" ? {} : { reason: reason.trim() });
    if (result !== undefined && "noun" in result)
      openDialog(() => <SecretDialog key={result.secret} {...result} />);
    // Somebody may have cancelled it, and opened another one.
    else if (current.dialog === own) closeDialog();
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

interface ActionButtonProps extends Action, Pick<DialogButtonProps, "class" | "disabled"> {
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

/** What is shown once, and never again. */
interface IssuedSecret {
  readonly name: string;
  readonly secret: string;
  readonly noun: "secret" | "token" | "code";
  /** The time until which the earlier secrets work after a rotation. */
  readonly overlapEndsAt?: string | undefined;
  /** The page to go to afterwards. */
  readonly nextUrl?: string;
}

const COPY_TO = "Only its hash is stored, so nobody can show it again. Copy it to where";
const SECRET_USES = {
  secret: `${COPY_TO} the client reads it.`,
  token: `${COPY_TO} this operator keeps it.`,
  code: "It works once, for five minutes. Run this command and paste the code:",
} as const;

/** A secret, the only time that it is shown. Leaving without copying asks once. */
export function SecretDialog(props: IssuedSecret) {
  const { name, secret, noun, overlapEndsAt, nextUrl } = props;
  const publicUrl = server.use()?.publicUrl;
  const shown = useRef<HTMLTextAreaElement>(null);
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  useLeaveGuard(isCopied ? undefined : `You have not copied the ${noun}, and nobody can see it again.`);
  const curl = publicUrl && noun === "secret" && curlCommand({ url: `${publicUrl}/pets`, key: secret });
  function leave() {
    if (!isCopied && !isAsking) return setAsking(true);
    closeDialog();
    if (nextUrl !== undefined) navigate(nextUrl, { isDone: true });
  }
  return (
    <Modal title={`${capitalized(noun)} of`} name={name} class="wide" onCancel={leave}>
      <div class="form">
        <p class="notice">
          <strong>It is shown only now.</strong> {SECRET_USES[noun]}
        </p>
        {noun === "code" && <code class="wrap">petstore login {location.origin}</code>}
        <div class="copy">
          <textarea
            ref={shown}
            class="secret"
            rows={2}
            readOnly
            autofocus
            value={secret}
            aria-label={capitalized(noun)}
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onCopy={() => setCopied(true)}
          />
          <CopyButton
            what={noun}
            shown={shown}
            text={secret}
            isPrimary={!isCopied}
            onCopied={() => setCopied(true)}
          />
        </div>
        {curl && (
          <div class="field">
            <span class="hint">A first request with it:</span>
            <CurlCommand text={curl} onCopied={() => setCopied(true)} />
          </div>
        )}
        {overlapEndsAt !== undefined && (
          <p>
            The earlier {noun}s work until <LocalTime at={overlapEndsAt} />. From then on requests with them
            fail with 401.
          </p>
        )}
        {isAsking && !isCopied && (
          <p class="problem" role="alert">
            You have not copied the {noun}. After this dialog nobody can see it again.
          </p>
        )}
        <div class="actions">
          <button type="button" class={isCopied ? "primary" : undefined} onClick={leave}>
            {isAsking && !isCopied ? "Close without copying" : "Done"}
          </button>
        </div>
      </div>
    </Modal>
  );
}

interface CopyProps {
  /** What is copied, for screen readers: "secret". */
  readonly what: string;
  /** The element that shows it. */
  readonly shown: RefObject<HTMLElement | null>;
  readonly text: string;
  readonly isPrimary?: boolean;
  readonly onCopied: () => void;
}

/** A command to copy. */
export function CurlCommand(props: Omit<CopyProps, "what" | "shown">) {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <div class="copy">
      <pre ref={shown} tabIndex={0} aria-label="curl command" onCopy={props.onCopied}>
        {props.text}
      </pre>
      <CopyButton what="curl command" shown={shown} {...props} />
    </div>
  );
}

function CopyButton({ what, shown, text, isPrimary, onCopied }: CopyProps) {
  const [state, setState] = useState<keyof typeof COPY_TEXTS>("ready");
  async function copy() {
    if (shown.current === null) return;
    const result = await copyText(text, shown.current);
    setState(result);
    if (result === "copied") onCopied();
  }
  return (
    <button
      type="button"
      class={isPrimary ? "primary" : undefined}
      aria-label={`Copy ${what}`}
      onClick={copy}
    >
      <span aria-live="polite">{COPY_TEXTS[state]}</span>
    </button>
  );
}
