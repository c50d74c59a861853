import { latency } from "../../text/durations.ts";
import { useState } from "preact/hooks";
import { isDelivered } from "../../domain/webhooks.ts";
import { call, type ResponseOf, type Webhook } from "../admin-api.ts";
import { may } from "../session.ts";
import { useCall } from "../polling.ts";
import { Problem, useAction } from "./forms.tsx";
import { Loaded, PageSection } from "./page.tsx";
import { type Column, DataTable } from "./tables.tsx";
import { Badge, Facts, LocalTimeAndAgo, TimeAgo } from "./values.tsx";

/** Where audit entries are delivered, what waits, and the last attempts. Without a webhook it shows nothing. */
export function WebhookSection() {
  const webhook = useCall("getWebhook");
  if (webhook.data?.url === null) return null;
  return (
    <PageSection title="Webhook">
      <Loaded of={webhook}>
        {({ url, events, waiting, oldestWaitingAt, deliveries }) => (
          <div class="sections">
            <Facts
              isCard
              facts={{
                URL: <code class="wrap">{url}</code>,
                Events: <code class="wrap">{events.join(", ")}</code>,
                Waiting:
                  oldestWaitingAt === null ? (
                    "Nothing"
                  ) : (
                    <>
                      {waiting}, the oldest since <LocalTimeAndAgo at={oldestWaitingAt} />
                    </>
                  ),
              }}
            />
            {may("testWebhook") && <TestButton />}
            {deliveries.length > 0 && (
              <DataTable caption="Last deliveries" columns={COLUMNS} rows={deliveries} />
            )}
          </div>
        )}
      </Loaded>
    </PageSection>
  );
}

function TestButton() {
  const { isRunning, problem, run } = useAction();
  const [result, setResult] = useState<ResponseOf<"testWebhook">>();
  const test = async () => {
    setResult(undefined);
    setResult(await call("testWebhook"));
  };
  return (
    <div class="form">
      <Problem text={problem?.message} />
      <div class="actions">
        <button type="button" disabled={isRunning} onClick={() => void run(test)}>
          Send a test event
        </button>
        <span role="status">
          {result && (
            <>
              <Outcome {...result} /> <span class="muted small">{latency(result.durationMs)}</span>{" "}
              <bdi class="small">{result.response}</bdi>
            </>
          )}
        </span>
      </div>
    </div>
  );
}

function Outcome({ status, error }: Pick<Webhook["deliveries"][number], "status" | "error">) {
  return <Badge meaning={isDelivered({ status }) ? "ok" : "error"} text={`${status ?? error}`} />;
}

const COLUMNS: readonly Column<Webhook["deliveries"][number]>[] = [
  { heading: "Event", position: "lead", cell: ({ type }) => <code>{type}</code> },
  { heading: "Entry", isNumber: true, cell: ({ id }) => id },
  { heading: "Response", position: "at-end", cell: Outcome },
  {
    heading: "Duration",
    isNumber: true,
    position: "below-end",
    cell: ({ durationMs }) => latency(durationMs),
  },
  { heading: "Time", position: "last", cell: ({ at }) => <TimeAgo at={at} /> },
];
