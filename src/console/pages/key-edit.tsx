import { grouped } from "../../api/formatting.ts";
import { KEY_NAME, KEY_NOTES, KEY_OWNER, MAX_LABELS } from "../../domain/key-fields.ts";
import { PLANS } from "../../domain/api-keys.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { call, type Key } from "../admin-api.ts";
import { openDialog, SecretDialog } from "../components/dialogs.tsx";
import { Choices, type ChoicesProps, Form, TextField, useDraft } from "../components/forms.tsx";
import { Loaded, PageHead, type PageProps } from "../components/page.tsx";
import { capitalized } from "../format.ts";
import { formValuesOf, keyChangesOf, type KeyFormValues, localInput, newKeyOf } from "../key-form-values.ts";
import { useCall } from "../polling.ts";
import { navigate } from "../router.ts";
import { announce } from "../current.ts";

const NEW_KEY = formValuesOf();

/** The form of a new key, then its secret, then its page. */
export function KeyCreationPage() {
  return (
    <section>
      <PageHead title="Create a key" />
      <KeyForm latest={NEW_KEY} submit="Create key" onSubmit={create} cancelUrl="/keys" />
    </section>
  );
}

async function create(values: KeyFormValues): Promise<void> {
  const { key, secret } = await call("createKey", { body: newKeyOf(values) });
  openDialog(() => <SecretDialog name={key.name} secret={secret} nextUrl={`/keys/${key.id}`} />);
}

export function KeyEditPage({ id }: PageProps) {
  const key = useCall("getKey", { id });
  const url = `/keys/${id}`;
  async function save(values: KeyFormValues, base: KeyFormValues) {
    const body = keyChangesOf(base, values);
    if (Object.keys(body).length > 0) {
      await call("updateKey", { id, body });
      announce("Saved. Servers apply it within one second.");
    }
    navigate(url, { isDone: true });
  }
  return (
    <section>
      <PageHead title={`Edit key ${id}`} />
      <Loaded of={key}>
        {(data) => (
          <KeyForm latest={formValuesOf(data)} submit="Save changes" onSubmit={save} cancelUrl={url} />
        )}
      </Loaded>
    </section>
  );
}

interface KeyFormProps {
  readonly latest: KeyFormValues;
  readonly submit: string;
  readonly onSubmit: (values: KeyFormValues, base: KeyFormValues) => Promise<void>;
  readonly cancelUrl: string;
}

/** All that can be said about a key, when it is created and later. */
function KeyForm({ latest, onSubmit, ...form }: KeyFormProps) {
  const { base, values, isDirty, restart, notice, inputOf } = useDraft(latest);
  const expiry = inputOf("expiresAt");
  async function save() {
    await onSubmit(values, base);
    restart(values);
  }
  return (
    <Form {...form} isDirty={isDirty} onSubmit={save}>
      {notice}
      <TextField
        label="Name"
        hint={`What the key is for, up to ${KEY_NAME.maxLength} characters`}
        {...inputOf("name")}
        required
        autofocus
        maxLength={KEY_NAME.maxLength * 2}
      />
      <PlanChoices {...inputOf("plan")} />
      {values.plan === "enterprise" && (
        <div class="field-row">
          <TextField label="Requests per minute" {...inputOf("perMinute")} type="number" required />
          <TextField label="Requests per day" {...inputOf("perDay")} type="number" required />
        </div>
      )}
      <Choices
        label="Access"
        options={[
          { value: "write", text: "Read and write" },
          { value: "read", text: "Read only", hint: "other methods than GET and HEAD are 403" },
        ]}
        {...inputOf("access")}
      />
      <TextField
        label="Owner"
        hint="Optional: an email address or a reference"
        {...inputOf("owner")}
        maxLength={KEY_OWNER.maxLength}
      />
      <TextField
        label="Labels"
        hint={`Optional: up to ${MAX_LABELS}, separated by commas`}
        {...inputOf("labels")}
      />
      <TextField
        label="Expires"
        hint="Optional, in your local time. From then on requests fail with 401."
        {...expiry}
        type="datetime-local"
      >
        <span class="actions">
          {[30, 90].map((days) => (
            <button
              key={days}
              type="button"
              onClick={() => expiry.onInput(localInput(Date.now() + days * DAY_MS))}
            >
              {`In ${days} days`}
            </button>
          ))}
        </span>
      </TextField>
      <TextField
        label="Notes"
        hint={`Optional, for operators, up to ${grouped(KEY_NOTES.maxLength)} characters`}
        {...inputOf("notes")}
        type="multiline"
        maxLength={KEY_NOTES.maxLength * 2}
      />
    </Form>
  );
}

/** With the limits that hold on this server. */
function PlanChoices(input: Pick<ChoicesProps<Key["plan"]>, "value" | "onInput">) {
  const settings = useCall("getSettings");
  const hintOf = (name: string) => {
    if (name === "enterprise") return { hint: "limits of its own" };
    const value = settings.data?.items.find((setting) => setting.name === `${name}-limits`)?.value;
    const [perMinute, perDay] = value?.match(/\d+/g) ?? [];
    if (perMinute === undefined || perDay === undefined) return {};
    return { hint: `${grouped(Number(perMinute))} a minute, ${grouped(Number(perDay))} a day` };
  };
  const optionOf = (value: Key["plan"]) => ({ value, text: capitalized(value), ...hintOf(value) });
  return <Choices label="Plan" options={PLANS.map(optionOf)} {...input} />;
}
