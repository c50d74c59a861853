import { longDuration } from "../../text/durations.ts";
import { useState } from "preact/hooks";
import { type ActionProps, ActionDialog } from "./action-dialog.tsx";
import { Choices } from "./fields.tsx";
import type { IssuedSecret } from "./secret-dialog.tsx";

interface RotateDialogProps extends Pick<ActionProps, "name" | "shortName" | "text"> {
  readonly noun: "secret" | "token";
  /** What is asked about the earlier ones. */
  readonly label: string;
  /** How long those may still work, in seconds, besides not at all. */
  readonly overlaps: readonly number[];
  readonly usual: number;
  /** Whether a rotation without an overlap is confirmed by the name. */
  readonly isFinalAtOnce?: boolean;
  readonly rotate: (body: { readonly overlapSeconds: number }) => Promise<Omit<IssuedSecret, "noun">>;
}

/** Replaces a secret or a token. The earlier ones work for a while, so that nothing fails meanwhile. */
export function RotateDialog(props: RotateDialogProps) {
  const { noun, label, overlaps, usual, isFinalAtOnce = false, rotate, ...action } = props;
  const [overlap, setOverlap] = useState(`${usual}`);
  const overlapSeconds = Number(overlap);
  async function run() {
    const { overlapEndsAt, ...issued } = await rotate({ overlapSeconds });
    return { noun, ...issued, ...(overlapSeconds > 0 && { overlapEndsAt }) };
  }
  return (
    <ActionDialog
      {...action}
      title={`Rotate the ${noun} of`}
      submitText={`Rotate ${noun}`}
      isFinal={isFinalAtOnce && overlapSeconds === 0}
      run={run}
    >
      <Choices
        label={label}
        value={overlap}
        options={[
          { value: "0", text: "None", hint: "requests fail within one second" },
          ...overlaps.map((seconds) => ({ value: `${seconds}`, text: longDuration(1_000 * seconds) })),
        ]}
        onInput={setOverlap}
      />
    </ActionDialog>
  );
}
