import { curlCommand } from "../../api/curl.ts";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { capitalized } from "../format.ts";
import { announce } from "../observable.ts";
import { refresh } from "../polling.ts";
import { useLeaveGuard } from "../router.ts";
import { Form, type FormProps, TextField } from "./forms.tsx";
import { LocalTime } from "./values.tsx";

interface DialogProps {
  readonly title: string;
  /** What it is about, after the title. */
  readonly name?: string | undefined;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside, and Escape closes it; afterwards the focus is where it was. */
function Dialog({ title, name, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      dialog.current?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={titleId} class="clamp">
        {title} {name !== undefined && <bdi>{name}</bdi>}
      </h2>
      {children}
    </dialog>
  );
}

interface FormDialogProps extends DialogProps, Pick<FormProps, "submit"> {
  /** The words that a person types before something that cannot be undone. */
  readonly confirmation?: string | undefined;
  /** What it is there for. A secret that comes of it is shown, once. */
  readonly run: () => Promise<IssuedSecret | undefined>;
  /** What was done, said when the dialog has closed: "Revoked mobile app." */
  readonly done?: string;
}

/** A dialog that does one thing, or nothing. */
export function FormDialog(props: FormDialogProps) {
  const { title, name, submit, confirmation, run, done, onClose, children } = props;
  const [typed, setTyped] = useState("");
  const [issued, setIssued] = useState<IssuedSecret>();
  async function onSubmit() {
    const secret = await run();
    if (secret === undefined) onClose();
    else setIssued(secret);
    if (done !== undefined) announce(done);
    await refresh();
  }
  if (issued !== undefined) return <SecretDialog {...issued} onClose={onClose} />;
  return (
    <Dialog title={title} name={name} onClose={onClose}>
      <Form
        submit={submit}
        onSubmit={onSubmit}
        onCancel={onClose}
        isReady={confirmation === undefined || typed.trim() === confirmation}
        isDangerous={confirmation !== undefined}
      >
        {children}
        {confirmation !== undefined && (
          <TextField
            label="Confirm"
            hint={
              <>
                Type <bdi class="mono wrap">{confirmation}</bdi> to confirm.
              </>
            }
            autofocus
            value={typed}
            onInput={setTyped}
          />
        )}
      </Form>
    </Dialog>
  );
}

/** A longer name is confirmed by the identifier: nobody types a thousand characters. */
const MAX_TYPED_NAME = 40;

/** The name of something, or "key 7" if that is easier to type. */
export function typeableName(name: string, shortName: string): string {
  const isTypeable = [...name].length <= MAX_TYPED_NAME && name === name.trim() && !/\s\s/.test(name);
  return isTypeable ? name : shortName;
}

interface ActionDialogProps extends DialogProps {
  readonly name: string;
  /** Instead of a long name: "key 7". */
  readonly shortName: string;
  /** Whether it cannot be undone, so that the name has to be typed. */
  readonly isFinal?: boolean;
  readonly run: () => Promise<unknown>;
  /** What was done: "Revoked". */
  readonly done: string;
}

/** Asks once before something is done: the title says what, and the text what will happen to clients, and when. */
export function ActionDialog({
  shortName,
  isFinal = false,
  run,
  done,
  children,
  ...props
}: ActionDialogProps) {
  const words = typeableName(props.name, shortName);
  return (
    <FormDialog
      {...props}
      confirmation={isFinal ? words : undefined}
      run={() => run().then(() => undefined)}
      done={`${done} ${words}.`}
      submit={
        <span>
          {props.title} <bdi>{words}</bdi>
        </span>
      }
    >
      <p>{children}</p>
    </FormDialog>
  );
}

/** What is shown once, and never again. */
interface IssuedSecret {
  readonly name: string;
  readonly secret: string;
  /** What it is. */
  readonly noun?: "secret" | "token";
  /** Base URL of the API as clients see it, for a first request with the secret of a key. */
  readonly publicUrl?: string;
  /** After a rotation: until when the earlier secrets work. */
  readonly overlapEndsAt?: string | undefined;
}

type SecretDialogProps = IssuedSecret & Pick<DialogProps, "onClose">;

/** A secret, the only time that it is shown. Leaving without copying asks once. */
export function SecretDialog({ name, secret, noun = "secret", ...props }: SecretDialogProps) {
  const { publicUrl, overlapEndsAt, onClose } = props;
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useLeaveGuard(isCopied ? undefined : `You have not copied the ${noun}, and nobody can see it again.`);
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const curl = publicUrl !== undefined && curlCommand({ url: `${publicUrl}/pets`, key: secret }, " ");
  const leave = () => (isCopied || isAsking ? onClose() : setAsking(true));
  return (
    <Dialog title={`${capitalized(noun)} of`} name={name} onClose={leave}>
      <div class="form">
        <p class="notice">
          <strong>It is shown only now.</strong> Only its hash is stored, so nobody can show it again. Copy it
          to where {noun === "token" ? "this operator keeps it" : "the client reads it"}.
        </p>
        <div class="copy">
          <input
            ref={input}
            type="text"
            readOnly
            value={secret}
            aria-label={capitalized(noun)}
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onCopy={() => setCopied(true)}
          />
          <CopyButton what={noun} text={secret} onCopied={() => setCopied(true)} />
        </div>
        {curl && (
          <div class="field">
            <span class="hint">A first request with it:</span>
            <div class="copy">
              <pre tabIndex={0} aria-label="curl command">
                {curl}
              </pre>
              <CopyButton what="curl command" text={curl} onCopied={() => setCopied(true)} />
            </div>
          </div>
        )}
        {overlapEndsAt !== undefined && (
          <p>
            The earlier secrets work until <LocalTime at={overlapEndsAt} />. From then on requests with them
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
    </Dialog>
  );
}

interface CopyProps {
  /** What is copied, for screen readers: "secret". */
  readonly what: string;
  readonly text: string;
  readonly onCopied: () => void;
}

const COPY_TEXTS = { ready: "Copy", copied: "Copied ✓", failed: "Press Ctrl-C" } as const;

/** Copies a text. Where the browser forbids it, the text is there to be selected. */
function CopyButton({ what, text, onCopied }: CopyProps) {
  const [state, setState] = useState<keyof typeof COPY_TEXTS>("ready");
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
      onCopied();
    } catch {
      // Over plain HTTP a browser offers the clipboard on the loopback address only.
      setState("failed");
    }
  }
  return (
    <button type="button" aria-label={`Copy ${what}`} onClick={copy}>
      <span aria-live="polite">{COPY_TEXTS[state]}</span>
    </button>
  );
}
