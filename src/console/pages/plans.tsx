import { longDuration } from "../../text/durations.ts";
import { grouped } from "../../text/formatting.ts";
import { type BanRulesView, call, type PlanLimits } from "../admin-api.ts";
import { may } from "../session.ts";
import { ActionDialog } from "../components/action-dialog.tsx";
import { DialogButton } from "../components/modal.tsx";
import { TextField } from "../components/fields.tsx";
import { useDraft } from "../components/draft.tsx";
import { BanRulesText } from "../components/key-columns.tsx";
import { Loaded, PageHead, PageSection } from "../components/page.tsx";
import { type Column, DataTable } from "../components/tables.tsx";
import { Facts, NO_VALUE } from "../components/values.tsx";
import { capitalized } from "../../pages/format.ts";
import { useCall } from "../polling.ts";

export function PlanListPage() {
  const plans = useCall("listPlans");
  const rules = useCall("getBanRules");
  return (
    <>
      <PageHead title="Plans" />
      <section>
        <p class="muted">
          The limits of each API key of a plan, and of each client address without a valid key. Every server
          applies a change within one second, and what keys have used stays.{" "}
          <a href="/keys?plan=enterprise">Enterprise keys</a> have limits of their own.
        </p>
        <Loaded of={plans}>
          {({ items }) => (
            <DataTable caption="Plans" columns={COLUMNS} rows={items} identityOf={({ plan }) => plan} />
          )}
        </Loaded>
      </section>
      <Loaded of={rules}>{(loaded) => <RulesSection rules={loaded} />}</Loaded>
    </>
  );
}

const nameOf = ({ plan }: PlanLimits): string => (plan === "anonymous" ? "Without a key" : capitalized(plan));

const COLUMNS: readonly Column<PlanLimits>[] = [
  {
    heading: "Plan",
    position: "lead",
    cell: (plan) => <span class="name">{nameOf(plan)}</span>,
  },
  { heading: "Per minute", isNumber: true, cell: ({ perMinute }) => grouped(perMinute) },
  { heading: "Per day", isNumber: true, cell: ({ perDay }) => grouped(perDay) },
  {
    heading: "Keys",
    isNumber: true,
    cell: ({ plan, keys }) => (keys === null ? NO_VALUE : <a href={`/keys?plan=${plan}`}>{grouped(keys)}</a>),
  },
  {
    heading: "Actions",
    position: "button-cell",
    cell: (plan) =>
      may("updatePlan") && (
        <DialogButton dialog={() => <PlanDialog plan={plan} />}>
          Edit<span class="visually-hidden"> {nameOf(plan)}</span>
        </DialogButton>
      ),
  },
];

type LimitDraft = Readonly<Record<"perMinute" | "perDay", string>>;
const limitsOf = ({ perMinute, perDay }: LimitDraft) => ({
  perMinute: Number(perMinute),
  perDay: Number(perDay),
});

function PlanDialog({ plan }: { readonly plan: PlanLimits }) {
  const { isDirty, inputOf, sendChanges } = useDraft({
    perMinute: `${plan.perMinute}`,
    perDay: `${plan.perDay}`,
  });
  return (
    <ActionDialog
      title="Limits:"
      name={nameOf(plan)}
      submitText="Save"
      isReady={isDirty}
      run={() =>
        sendChanges(limitsOf, (limits) => call("updatePlan", { body: { plan: plan.plan, ...limits } }))
      }
      done="Saved the limits:"
    >
      <TextField {...inputOf("perMinute")} label="Requests per minute" type="number" required autofocus />
      <TextField {...inputOf("perDay")} label="Requests per day" type="number" required />
    </ActionDialog>
  );
}

function RulesSection({ rules }: { readonly rules: BanRulesView }) {
  const { strikes, graceMs, lengthMs, maxLengthMs } = rules;
  return (
    <PageSection
      title="Ban rules"
      control={
        may("updateBanRules") && (
          <div class="actions">
            <DialogButton dialog={() => <RulesDialog rules={rules} />}>Edit ban rules</DialogButton>
          </div>
        )
      }
    >
      <p class="muted">
        <BanRulesText />
      </p>
      <Facts
        isCard
        facts={{
          Strikes: grouped(strikes),
          "Grace period": longDuration(graceMs),
          "First ban": longDuration(lengthMs),
          "Longest ban": longDuration(maxLengthMs),
        }}
      />
    </PageSection>
  );
}

const secondsOf = (ms: number): string => `${ms / 1_000}`;
const msOf = (seconds: string): number => Math.round(Number(seconds) * 1_000);

type RulesDraft = Readonly<Record<"strikes" | "graceMs" | "lengthMs" | "maxLengthMs", string>>;
const rulesOf = ({ strikes, graceMs, lengthMs, maxLengthMs }: RulesDraft) => ({
  strikes: Number(strikes),
  graceMs: msOf(graceMs),
  lengthMs: msOf(lengthMs),
  maxLengthMs: msOf(maxLengthMs),
});

function RulesDialog({ rules }: { readonly rules: BanRulesView }) {
  const { isDirty, inputOf, sendChanges } = useDraft({
    strikes: `${rules.strikes}`,
    graceMs: secondsOf(rules.graceMs),
    lengthMs: secondsOf(rules.lengthMs),
    maxLengthMs: secondsOf(rules.maxLengthMs),
  });
  return (
    <ActionDialog
      title="Ban rules"
      submitText="Save"
      isReady={isDirty}
      run={() => sendChanges(rulesOf, (body) => call("updateBanRules", { body }))}
      done="Saved the ban rules"
    >
      <TextField {...inputOf("strikes")} label="Strikes that ban a key" type="number" required autofocus />
      <TextField
        {...inputOf("graceMs")}
        label="Grace period after the first 429 and after each strike, in seconds"
        type="seconds"
        hint="0 to 3,600"
        required
      />
      <TextField
        {...inputOf("lengthMs")}
        label="First ban, in seconds"
        type="seconds"
        hint="1 second to 30 days (2,592,000)"
        required
      />
      <TextField
        {...inputOf("maxLengthMs")}
        label="Longest ban, in seconds"
        type="seconds"
        hint="Not shorter than the first one"
        required
      />
    </ActionDialog>
  );
}
