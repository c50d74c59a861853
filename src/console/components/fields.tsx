/* The fields of a form. */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { DAY_MS } from "../../text/time-units.ts";
import type { ResourceField } from "../../domain/fields.ts";
import { grouped } from "../../text/formatting.ts";
import { capitalized, localInput } from "../../pages/format.ts";
import type { RejectedRequest } from "../admin-api.ts";

/** The type declarations have a type of its own for each type of input. */
const INPUT_TYPES = {
  text: { type: "text", dir: "auto" },
  password: { type: "password" },
  number: { type: "number", min: 1, step: 1 },
  seconds: { type: "number", min: 0, step: "any" },
  "datetime-local": { type: "datetime-local" },
} as const;

/** What the server did not accept. */
export const Rejected = createContext<RejectedRequest | undefined>(undefined);

type FieldEvent = Event & { readonly currentTarget: HTMLInputElement | HTMLTextAreaElement };

interface TextFieldProps {
  readonly label: string;
  /** The name of the field in the body of the request. */
  readonly field?: string;
  /** The constraint, before it is broken. */
  readonly hint?: ComponentChildren;
  readonly type?: keyof typeof INPUT_TYPES | "multiline";
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly required?: boolean;
  readonly autofocus?: boolean;
  readonly autocomplete?: string;
  readonly maxLength?: number;
  readonly min?: number;
  readonly max?: number;
  readonly class?: string;
  /** What is shown below the input. */
  readonly children?: ComponentChildren;
}

/** A label, an input and what the input accepts; below it, why its value is not valid. */
export function TextField({ label, field, hint, type = "text", onInput, children, ...rest }: TextFieldProps) {
  const { autofocus, ...attributes } = rest;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const rejected = useContext(Rejected);
  const [found, setFound] = useState<string>();
  const isRejected = rejected !== undefined && rejected.field === field;
  const problem = found ?? (isRejected ? rejected.message : undefined);
  const focus = () => box.current?.querySelector<HTMLElement>("input, textarea")?.focus();
  useEffect(() => {
    if (autofocus) focus();
  }, []);
  useLayoutEffect(() => {
    if (isRejected) focus();
  }, [rejected]);
  const shared = {
    id,
    autocomplete: "off",
    spellcheck: type === "multiline",
    "aria-describedby": `${id}-hint`,
    "aria-invalid": problem !== undefined,
    ...attributes,
    onInput({ currentTarget }: FieldEvent) {
      setFound(undefined);
      onInput(currentTarget.value);
    },
    // Shows the message of the browser below the input.
    onInvalid(event: FieldEvent) {
      event.preventDefault();
      const input = event.currentTarget;
      if (input.form?.querySelector(":invalid") === input) input.focus();
      setFound(input.validationMessage);
    },
  };
  return (
    <div class="field" ref={box}>
      <label for={id}>{label}</label>
      {type === "multiline" ? (
        <textarea {...shared} dir="auto" />
      ) : (
        <input {...INPUT_TYPES[type]} {...shared} />
      )}
      {children}
      <span class="hint" id={`${id}-hint`}>
        {problem === undefined ? hint : <span class="tone-error">■ {problem}</span>}
      </span>
    </div>
  );
}

/** When a key or a token expires: any time, or one of two. */
export function ExpiryField(input: Pick<TextFieldProps, "field" | "value" | "onInput">) {
  return (
    <TextField
      {...input}
      label="Expires"
      hint="Optional, in your local time. From then on requests fail with 401."
      type="datetime-local"
    >
      <span class="actions">
        {[30, 90].map((days) => (
          <button
            key={days}
            type="button"
            onClick={() => input.onInput(localInput(Date.now() + days * DAY_MS))}
          >
            {`In ${days} days`}
          </button>
        ))}
      </span>
    </TextField>
  );
}

export interface ChoicesProps<T extends string> {
  readonly label: string;
  readonly value: T;
  /** The text is the value, if there is no other. */
  readonly options: readonly { readonly value: T; readonly text?: string; readonly hint?: string }[];
  readonly onInput: (value: T) => void;
}

/** A choice of one value among a few, all of them visible. */
export function Choices<T extends string>({ label, value, options, onInput }: ChoicesProps<T>) {
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
              onChange={() => onInput(option.value)}
            />
            <span>
              {option.text ?? capitalized(option.value)}
              {option.hint !== undefined && <span class="muted small"> {option.hint}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ResourceInputProps extends Omit<TextFieldProps, "type" | "hint" | "required" | "min" | "max"> {
  readonly of: ResourceField;
}

/** The input of a field of a resource. An empty value is a missing one. */
export function ResourceInput({ of: { schema, ifMissing }, ...input }: ResourceInputProps) {
  const isOptional = ifMissing !== undefined;
  if (schema.kind === "choice") {
    const options = schema.choices.map((value) => ({ value, text: capitalized(value) }));
    return <Choices options={isOptional ? [{ value: "", text: "None" }, ...options] : options} {...input} />;
  }
  const expected = schema.kind === "text" ? `1 to ${grouped(schema.maxLength)} characters` : schema.expected;
  const shared = {
    required: !isOptional,
    hint: isOptional ? `Optional: ${expected}` : capitalized(expected),
    ...input,
  };
  switch (schema.kind) {
    case "text":
      return <TextField type="multiline" {...shared} />;
    case "integer":
      return <TextField type="number" min={schema.min} max={schema.max} {...shared} />;
    default:
      return <TextField class="mono" {...shared} />;
  }
}
