import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { errorOf, RejectedRequest } from "../admin-api.ts";
import { useLeaveGuard } from "../router.ts";
import { Rejected } from "./fields.tsx";

/** Runs one action at a time, and keeps what went wrong. */
export function useAction() {
  const [problem, setProblem] = useState<Error>();
  const [isRunning, setRunning] = useState(false);
  async function run(action: () => Promise<void>) {
    if (isRunning) return;
    setRunning(true);
    setProblem(undefined);
    try {
      await action();
    } catch (error) {
      setProblem(errorOf(error));
    } finally {
      setRunning(false);
    }
  }
  return { isRunning, problem, run };
}

/** What went wrong, in words. */
export function Problem({ text }: { readonly text: string | undefined }) {
  return <div role="alert">{text !== undefined && <p class="problem">{text}</p>}</div>;
}

interface FormProps {
  readonly submitText: ComponentChildren;
  readonly onSubmit: () => Promise<void>;
  /** Whether it can be submitted as it is. */
  readonly isReady?: boolean;
  readonly isDangerous?: boolean;
  /** Whether leaving the page would lose what was typed. */
  readonly isDirty?: boolean;
  /** What is wrong before anything was submitted. */
  readonly problem?: string | undefined;
  /** A dialog has a button for it, before the other one. */
  readonly onCancel?: () => void;
  readonly cancelText?: string | undefined;
  /** A page has a link to it, after the button. */
  readonly cancelUrl?: string;
  readonly children?: ComponentChildren;
}

/** Fields, what went wrong, and the buttons. */
export function Form({ submitText, onSubmit, isReady = true, isDangerous = false, ...props }: FormProps) {
  const { isRunning, problem, run } = useAction();
  const rejected = problem instanceof RejectedRequest && problem.field ? problem : undefined;
  useLeaveGuard(props.isDirty ? "What you typed is not saved." : undefined);
  return (
    <form
      class={props.cancelUrl === undefined ? "form" : "form card page-form"}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void run(onSubmit);
      }}
    >
      <Rejected.Provider value={rejected}>{props.children}</Rejected.Provider>
      <Problem text={rejected ? "A value is not valid: see above." : (problem?.message ?? props.problem)} />
      <div class="actions">
        {props.onCancel && (
          <button type="button" onClick={props.onCancel}>
            {props.cancelText ?? "Cancel"}
          </button>
        )}
        <button
          type="submit"
          class={isDangerous ? "primary danger" : "primary"}
          disabled={!isReady || isRunning}
        >
          {submitText}
        </button>
        {props.cancelUrl !== undefined && (
          <a class="button" href={props.cancelUrl}>
            Cancel
          </a>
        )}
      </div>
    </form>
  );
}
