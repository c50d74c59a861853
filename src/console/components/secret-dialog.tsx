import { useEffect, useRef, useState } from "preact/hooks";
import { curlCommand } from "../../api/curl.ts";
import { LocalTime } from "./time.tsx";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

export interface NewSecret {
  readonly name: string;
  readonly secret: string;
  /** Base URL of the API as clients see it. */
  readonly publicUrl: string;
  /** After a roll: until when the earlier secrets work. */
  readonly overlapEndsAt?: string;
}

interface SecretDialogProps extends NewSecret {
  readonly onClose: () => void;
}

/** A secret, the only time that it is shown. Leaving without copying asks once. */
export function SecretDialog({ name, secret, publicUrl, overlapEndsAt, onClose }: SecretDialogProps) {
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const curl = curlCommand({ url: `${publicUrl}/pets`, key: secret }, " ");
  const leave = () => (isCopied || isAsking ? onClose() : setAsking(true));
  return (
    <Dialog
      title={
        <span class="clamp">
          Secret of <bdi>{name}</bdi>
        </span>
      }
      onClose={leave}
    >
      <div class="form">
        <p class="notice">
          <strong>It is shown only now.</strong> Only its hash is stored, so nobody can show it again. Copy it
          to where the client reads it.
        </p>
        <div class="copy">
          <input
            ref={input}
            type="text"
            readOnly
            value={secret}
            aria-label="Secret"
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onCopy={() => setCopied(true)}
          />
          <CopyButton what="secret" text={secret} onCopied={() => setCopied(true)} />
        </div>
        <div class="field">
          <span class="muted small">A first request with it:</span>
          <div class="copy">
            <pre tabIndex={0} aria-label="curl command">
              {curl}
            </pre>
            <CopyButton what="curl command" text={curl} onCopied={() => setCopied(true)} />
          </div>
        </div>
        {overlapEndsAt !== undefined && (
          <p>
            The earlier secrets work until <LocalTime at={overlapEndsAt} />. From then on requests with them
            fail with 401.
          </p>
        )}
        {isAsking && !isCopied && (
          <p class="problem" role="alert">
            You have not copied the secret. After this dialog nobody can see it again.
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
