import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { KEY_NAME, KEY_NOTES, KEY_OWNER, MAX_LABELS } from "../../domain/key-fields.ts";
import { call } from "../admin-api.ts";
import { count } from "../format.ts";
import type { KeyFormValues } from "../key-form-values.ts";
import { usePolled } from "../polling.ts";
import { Choices, Field, Problem, useAction } from "./form.tsx";

interface KeyFormProps {
  readonly initial: KeyFormValues;
  readonly submitText: string;
  readonly onSubmit: (values: KeyFormValues) => Promise<void>;
  /** Beside the button. */
  readonly children?: ComponentChildren;
}

/** All that can be said about a key, when it is created and later. */
export function KeyForm({ initial, submitText, onSubmit, children }: KeyFormProps) {
  const [values, setValues] = useState(initial);
  const { isRunning, problem, run } = useAction();
  const set = (change: Partial<KeyFormValues>) => setValues((last) => ({ ...last, ...change }));
  const textOf = (name: keyof KeyFormValues) => ({
    value: values[name],
    autocomplete: "off",
    onInput: (event: { currentTarget: { value: string } }) => set({ [name]: event.currentTarget.value }),
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(() => onSubmit(values));
      }}
    >
      <Field label="Name" hint={`What the key is for, up to ${KEY_NAME.maxLength} characters`}>
        {(attributes) => (
          <input
            {...attributes}
            {...textOf("name")}
            type="text"
            dir="auto"
            required
            maxLength={KEY_NAME.maxLength * 2}
          />
        )}
      </Field>
      <PlanChoices plan={values.plan} onChange={(plan) => set({ plan })} />
      {values.plan === "enterprise" && (
        <div class="field-row">
          <Field label="Requests per minute">
            {(attributes) => (
              <input {...attributes} {...textOf("perMinute")} type="number" required min={1} step={1} />
            )}
          </Field>
          <Field label="Requests per day">
            {(attributes) => (
              <input {...attributes} {...textOf("perDay")} type="number" required min={1} step={1} />
            )}
          </Field>
        </div>
      )}
      <Choices
        label="Access"
        value={values.access}
        options={[
          { value: "write", text: "Read and write" },
          { value: "read", text: "Read only", hint: "other methods than GET and HEAD are 403" },
        ]}
        onChange={(access) => set({ access })}
      />
      <Field label="Owner" hint="Optional: an email address or a reference">
        {(attributes) => (
          <input
            {...attributes}
            {...textOf("owner")}
            type="text"
            dir="auto"
            maxLength={KEY_OWNER.maxLength}
          />
        )}
      </Field>
      <Field label="Labels" hint={`Optional: up to ${MAX_LABELS}, separated by commas`}>
        {(attributes) => <input {...attributes} {...textOf("labels")} type="text" dir="auto" />}
      </Field>
      <Field label="Expires" hint="Optional, in your local time. From then on requests fail with 401.">
        {(attributes) => <input {...attributes} {...textOf("expiresAt")} type="datetime-local" />}
      </Field>
      <Field label="Notes" hint={`Optional, for operators, up to ${count(KEY_NOTES.maxLength)} characters`}>
        {(attributes) => (
          <textarea {...attributes} {...textOf("notes")} dir="auto" maxLength={KEY_NOTES.maxLength * 2} />
        )}
      </Field>
      <Problem text={problem} />
      <div class="actions">
        <button type="submit" class="primary" disabled={isRunning}>
          {submitText}
        </button>
        {children}
      </div>
    </form>
  );
}

interface PlanChoicesProps {
  readonly plan: KeyFormValues["plan"];
  readonly onChange: (plan: KeyFormValues["plan"]) => void;
}

/** With the limits that hold on this server. */
function PlanChoices({ plan, onChange }: PlanChoicesProps) {
  const settings = usePolled("settings", () => call("getSettings"));
  const hintOf = (name: string) => {
    const value = settings.data?.items.find((setting) => setting.name === `${name}-limits`)?.value;
    const [perMinute, perDay] = value?.match(/\d+/g) ?? [];
    if (perMinute === undefined || perDay === undefined) return {};
    return { hint: `${count(Number(perMinute))} a minute, ${count(Number(perDay))} a day` };
  };
  return (
    <Choices
      label="Plan"
      value={plan}
      options={[
        { value: "free", text: "Free", ...hintOf("free") },
        { value: "pro", text: "Pro", ...hintOf("pro") },
        { value: "business", text: "Business", ...hintOf("business") },
        { value: "enterprise", text: "Enterprise", hint: "limits of its own" },
      ]}
      onChange={onChange}
    />
  );
}
