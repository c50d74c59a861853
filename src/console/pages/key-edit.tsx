import { grouped } from "../../text/formatting.ts";
import { KEY_NAME, KEY_NOTES, MAX_LABELS } from "../../domain/key-fields.ts";
import { PLANS } from "../../domain/plans.ts";
import type { ComponentChildren } from "preact";
import { call, type Key } from "../admin-api.ts";
import { openDialog } from "../components/modal.tsx";
import { SecretDialog } from "../components/secret-dialog.tsx";
import { Form } from "../components/forms.tsx";
import { Choices, type ChoicesProps, ExpiryField, TextField } from "../components/fields.tsx";
import { type Draft, useDraft } from "../components/draft.tsx";
import { FormPage, Loaded, NameTitle, type PageProps } from "../components/page.tsx";
import { formValuesOf, type KeyFormValues, newKeyOf } from "../key-form-values.ts";
import { useCall } from "../polling.ts";
import { navigate } from "../router.ts";
import { announce } from "../state.ts";

const NEW_KEY = formValuesOf();

/** The form of a new key, then its secret, then its page. */
export function KeyCreationPage() {
  return (
    <FormPage
      title="Create a key"
      about="You see its secret once. Every server accepts it within one second. You can edit the rest later."
    >
      <KeyForm latest={NEW_KEY} submitText="Create key" onSubmit={create} cancelUrl="/keys" />
    </FormPage>
  );
}

async function create({ values }: Draft<KeyFormValues>): Promise<void> {
  const { key, secret } = await call("createKey", { body: newKeyOf(values) });
  openDialog(() => (
    <SecretDialog noun="secret" name={key.name} secret={secret} nextUrl={`/keys/${key.id}`} />
  ));
}

export function KeyEditPage({ id }: PageProps) {
  const key = useCall("getKey", { id });
  const url = `/keys/${id}`;
  async function save({ sendChanges }: Draft<KeyFormValues>) {
    // An expiry that was not touched keeps its seconds.
    const saved = await sendChanges(newKeyOf, (body) => call("updateKey", { id, body }));
    if (saved !== undefined) announce("Saved. Servers apply it within one second.");
    navigate(url, { isDone: true });
  }
  return (
    <FormPage
      title={<NameTitle name={`Edit ${key.data?.name ?? `key ${id}`}`} />}
      about="Every server applies changes within one second. The secrets stay, and what the key has used stays counted."
    >
      <Loaded of={key}>
        {(data) => (
          <KeyForm latest={formValuesOf(data)} submitText="Save changes" onSubmit={save} cancelUrl={url} />
        )}
      </Loaded>
    </FormPage>
  );
}

interface KeyFormProps {
  readonly latest: KeyFormValues;
  readonly submitText: string;
  readonly onSubmit: (draft: Draft<KeyFormValues>) => Promise<void>;
  readonly cancelUrl: string;
}

/** All that can be said about a key, when it is created and later. */
function KeyForm({ latest, onSubmit, ...form }: KeyFormProps) {
  const draft = useDraft(latest);
  const { values, isDirty, restart, notice, inputOf } = draft;
  async function save() {
    await onSubmit(draft);
    restart(values);
  }
  /** The inputs in their order. */
  const inputs: Record<Exclude<keyof KeyFormValues, keyof Key["limits"]> | "limits", ComponentChildren> = {
    name: (
      <TextField
        hint={`What the key is for, up to ${KEY_NAME.maxLength} characters`}
        {...inputOf("name")}
        required
        autofocus
      />
    ),
    plan: <PlanChoices {...inputOf("plan")} />,
    limits: values.plan === "enterprise" && (
      <div class="field-row">
        <TextField {...inputOf("perMinute")} label="Requests per minute" type="number" required />
        <TextField {...inputOf("perDay")} label="Requests per day" type="number" required />
      </div>
    ),
    access: (
      <Choices
        options={[
          { value: "write", text: "Read and write" },
          { value: "read", text: "Read only", hint: "other methods than GET and HEAD are 403" },
        ]}
        {...inputOf("access")}
      />
    ),
    owner: <TextField {...inputOf("owner")} hint="Optional: an email address or a reference" />,
    labels: <TextField {...inputOf("labels")} hint={`Optional: up to ${MAX_LABELS}, separated by commas`} />,
    expiresAt: <ExpiryField {...inputOf("expiresAt")} />,
    notes: (
      <TextField
        {...inputOf("notes")}
        hint={`Optional, for operators, up to ${grouped(KEY_NOTES.maxLength)} characters`}
        type="multiline"
      />
    ),
  };
  return (
    <Form {...form} isDirty={isDirty} isReady={isDirty || latest === NEW_KEY} onSubmit={save}>
      {notice}
      {Object.values(inputs)}
    </Form>
  );
}

/** The plans with their limits. */
function PlanChoices(input: Omit<ChoicesProps<Key["plan"]>, "options">) {
  const { data } = useCall("listPlans");
  const hintOf = (name: string) => {
    if (name === "enterprise") return { hint: "limits of its own" };
    const limits = data?.items.find(({ plan }) => plan === name);
    return limits && { hint: `${grouped(limits.perMinute)} a minute, ${grouped(limits.perDay)} a day` };
  };
  const optionOf = (value: Key["plan"]) => ({ value, ...hintOf(value) });
  return <Choices options={PLANS.map(optionOf)} {...input} />;
}
