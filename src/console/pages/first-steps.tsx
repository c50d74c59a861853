import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { curlCommand } from "../../text/curl.ts";
import { may } from "../session.ts";
import { CurlCommand } from "../components/copying.tsx";
import { Empty } from "../components/page.tsx";
import { useCall } from "../polling.ts";
import { serverSignal } from "../state.ts";

interface FirstStepsProps {
  /** Whether a key was used in the last 24 hours. */
  readonly isUsed: boolean;
  readonly hasRequests: boolean;
  /** The plots. They are shown as soon as they have something to show. */
  readonly children: ComponentChildren;
}

/** What to do with a service that nobody has used. It stays until the page is left, so that each step is seen done. */
export function FirstSteps({ isUsed, hasRequests, children }: FirstStepsProps) {
  const [isShown, setShown] = useState(!isUsed);
  useEffect(() => {
    if (!isUsed) setShown(true);
  }, [isUsed]);
  return <>{isShown ? <Steps {...{ hasRequests, children }} /> : children}</>;
}

function Steps({ hasRequests, children }: Omit<FirstStepsProps, "isUsed">) {
  const { data, error } = useCall("listKeys", { query: { sort: "lastUsedAt", order: "desc", limit: 1 } });
  const publicUrl = serverSignal.use()?.publicUrl;
  const [wasNew, setNew] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const latest = data?.items[0];
  const isUsed = latest !== undefined && latest.lastUsedAt !== null;
  useEffect(() => {
    if (data !== undefined && !isUsed) setNew(true);
  }, [data, isUsed]);
  if (data === undefined && error !== undefined) return <>{children}</>;
  if (data === undefined || publicUrl === undefined) return null;
  if (isUsed && !wasNew)
    return (
      <>
        {children}
        <Empty title="No key was used in the last 24 hours">
          The usage of a key appears here within 5 seconds of a request.
        </Empty>
      </>
    );
  const curl = curlCommand({ url: `${publicUrl}/pets`, secret: "YOUR_SECRET" });
  const steps = (
    <section class="card" aria-label="First steps">
      <h2>{isUsed ? "It works" : "Send a first request"}</h2>
      <ol class="steps">
        <Step isDone={latest !== undefined} title="Create a key">
          {latest && (
            <>
              The key{" "}
              <strong>
                <bdi>{latest.name}</bdi>
              </strong>{" "}
              exists. Its secret was shown, or stored in a file, when it was created.{" "}
            </>
          )}
          {may("createKey") ? (
            <a class={latest ? undefined : "button primary"} href="/keys/new">
              {latest ? "Create another key" : "Create a key"}
            </a>
          ) : (
            latest === undefined && "An operator with the role admin creates it."
          )}
        </Step>
        <Step isDone={isCopied || isUsed} title="Copy this command, and replace YOUR_SECRET">
          <CurlCommand
            text={curl}
            isPrimary={latest !== undefined && !isCopied && !isUsed}
            onCopied={() => setCopied(true)}
          />
        </Step>
        <Step isDone={isUsed} title="See it here">
          {isUsed ? <a href="/requests">See your first request</a> : "It appears within 5 seconds."}
        </Step>
      </ol>
    </section>
  );
  return (
    <>
      {steps}
      {(isUsed || hasRequests) && children}
    </>
  );
}

interface StepProps {
  readonly isDone: boolean;
  readonly title: string;
  readonly children: ComponentChildren;
}

function Step({ isDone, title, children }: StepProps) {
  return (
    <li data-done={isDone ? "" : undefined}>
      <strong>
        {title} {isDone && <span class="tone-ok">✓ done</span>}
      </strong>
      <div>{children}</div>
    </li>
  );
}
