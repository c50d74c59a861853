import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  /** The constraint, before it is broken. */
  readonly hint?: ComponentChildren;
  readonly children: (attributes: {
    readonly id: string;
    readonly "aria-describedby"?: string;
  }) => ComponentChildren;
}

/** A label, a control and what the control accepts. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(hint === undefined ? { id } : { id, "aria-describedby": hintId })}
      {hint !== undefined && (
        <span class="hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}

interface ChoicesProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly text: string; readonly hint?: string }[];
  readonly onChange: (value: T) => void;
}

/** One of a few, all of them visible. */
export function Choices<T extends string>({ label, value, options, onChange }: ChoicesProps<T>) {
  const name = useId();
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      <div class="choices">
        {options.map((option) => (
          <label class="choice" key={option.value}>
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            <span>
              {option.text}
              {option.hint !== undefined && <span class="muted small"> {option.hint}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Runs one action at a time, and keeps what went wrong. */
export function useAction(): {
  readonly isRunning: boolean;
  readonly problem: string | undefined;
  run(action: () => Promise<void>): Promise<void>;
} {
  const [problem, setProblem] = useState<string>();
  const [isRunning, setRunning] = useState(false);
  const running = useRef(false);
  async function run(action: () => Promise<void>) {
    if (running.current) return;
    running.current = true;
    setRunning(true);
    setProblem(undefined);
    try {
      await action();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      running.current = false;
      setRunning(false);
    }
  }
  return { isRunning, problem, run };
}

/** What went wrong, in words. */
export function Problem({ text }: { readonly text: string | undefined }) {
  return <div role="alert">{text !== undefined && <p class="problem">{text}</p>}</div>;
}
