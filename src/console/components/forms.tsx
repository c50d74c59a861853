import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

/** Each is its own type of input in the type declarations. */
const INPUT_TYPES = {
  text: { type: "text", dir: "auto" },
  password: { type: "password" },
  number: { type: "number", min: 1, step: 1 },
  "datetime-local": { type: "datetime-local" },
} as const;

interface TextFieldProps {
  readonly label: string;
  /** The constraint, before it is broken. */
  readonly hint?: ComponentChildren;
  readonly type?: keyof typeof INPUT_TYPES | "multiline";
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly required?: boolean;
  readonly autofocus?: boolean;
  readonly autocomplete?: string;
  readonly maxLength?: number;
  readonly class?: string;
  readonly "aria-invalid"?: boolean;
}

/** A label, an input and what the input accepts. */
export function TextField({ label, hint, type = "text", onInput, ...rest }: TextFieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  const attributes = {
    id,
    autocomplete: "off",
    spellcheck: type === "multiline",
    ...(hint !== undefined && { "aria-describedby": hintId }),
    ...rest,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === "multiline" ? (
        <textarea {...attributes} dir="auto" onInput={(event) => onInput(event.currentTarget.value)} />
      ) : (
        <input
          {...attributes}
          {...INPUT_TYPES[type]}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
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
export function useAction() {
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

export interface FormProps {
  /** On the button. */
  readonly submit: ComponentChildren;
  readonly onSubmit: () => Promise<void>;
  /** Whether it can be submitted as it is. */
  readonly isReady?: boolean;
  readonly isDangerous?: boolean;
  /** What is wrong before anything was submitted. */
  readonly problem?: string | undefined;
  /** In a dialog: the button before the other one. */
  readonly onCancel?: () => void;
  /** On a page: the link after the button. */
  readonly cancelUrl?: string;
  readonly children?: ComponentChildren;
}

/** Fields, what went wrong, and the buttons. */
export function Form({ submit, onSubmit, isReady = true, isDangerous = false, ...props }: FormProps) {
  const { isRunning, problem, run } = useAction();
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void run(onSubmit);
      }}
    >
      {props.children}
      <Problem text={problem ?? props.problem} />
      <div class="actions">
        {props.onCancel && (
          <button type="button" onClick={props.onCancel}>
            Cancel
          </button>
        )}
        <button
          type="submit"
          class={isDangerous ? "primary danger" : "primary"}
          disabled={!isReady || isRunning}
        >
          {submit}
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
