import { useRef, useState } from "preact/hooks";
import { curlCommand } from "../../text/curl.ts";
import { capitalized } from "../../pages/format.ts";
import { navigate, useLeaveGuard } from "../router.ts";
import { serverSignal } from "../state.ts";
import { CopyButton, CurlCommand } from "./copying.tsx";
import { closeDialog, Modal } from "./modal.tsx";
import { LocalTime } from "./values.tsx";

/** What is shown once, and never again. */
export interface IssuedSecret {
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
  const publicUrl = serverSignal.use()?.publicUrl;
  const shown = useRef<HTMLTextAreaElement>(null);
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  useLeaveGuard(isCopied ? undefined : `You have not copied the ${noun}, and nobody can see it again.`);
  const curl = publicUrl && noun === "secret" && curlCommand({ url: `${publicUrl}/pets`, secret });
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
