import { useEffect, useState } from "preact/hooks";
import { labelOf } from "../../domain/fields.ts";
import { changesOf } from "../changes.ts";

export type Draft<T extends Values> = ReturnType<typeof useDraft<T>>;

/** What a form holds: text as it was typed. */
type Values = Readonly<Record<string, string>>;

/** The values of a form. They follow changes by others until the user edits one. */
export function useDraft<T extends Values>(latest: T) {
  const [{ base, values }, setDraft] = useState({ base: latest, values: latest });
  const isDirty = !isSame(values, base);
  const isChanged = !isSame(latest, base);
  const restart = (from: T) => setDraft({ base: from, values: from });
  useEffect(() => {
    if (isChanged && !isDirty) restart(latest);
  }, [isChanged, isDirty]);
  return {
    values,
    isDirty,
    restart,
    /** Sends the fields of a body that the user has changed. Without any it sends nothing, and returns undefined. */
    async sendChanges<Body extends object, Result>(
      bodyOf: (values: T) => Body,
      send: (changes: Partial<Body>) => Promise<Result>,
    ): Promise<Result | undefined> {
      const changes = changesOf(bodyOf(base), bodyOf(values));
      return Object.keys(changes).length === 0 ? undefined : send(changes);
    },
    /** What connects a field with the value of that name. */
    inputOf: <Name extends keyof T & string>(field: Name) => ({
      field,
      label: labelOf(field),
      value: values[field],
      onInput: (value: T[Name]) =>
        setDraft((last) => ({ ...last, values: { ...last.values, [field]: value } })),
    }),
    notice: isChanged && isDirty && (
      <p class="notice" role="status">
        It was changed meanwhile. What you typed is kept, and only what you changed is saved.{" "}
        <button type="button" onClick={() => restart(latest)}>
          Show the new values
        </button>
      </p>
    ),
  };
}

const isSame = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);
