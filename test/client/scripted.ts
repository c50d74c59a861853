import * as client from "../../src/client/index.ts";

export const PET = '{"id":1,"name":"Rex","categoryId":7}';
export const NEW_PET = { name: "Rex", categoryId: 7 };

export interface Sent {
  readonly url: string;
  readonly method: string;
  readonly idempotencyKey: string | null;
  readonly headers: Headers;
}

export type Reply = Response | Error | "never";
export const json = (status: number, body: string, headers: Record<string, string> = {}) =>
  new Response(body, { status, headers });
export const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(status, JSON.stringify({ code, message: `${code}.`, status }), headers);

export const cutOff = () =>
  new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("terminated")) }));

/** A client whose requests get these replies, in this order. */
export function scripted(replies: Reply[], options: Partial<client.PetstoreOptions> = {}) {
  const sent: Sent[] = [];
  const delays: number[] = [];
  const petstore = new client.Petstore({
    key: "pet_live_x",
    baseUrl: "http://petstore.test/v1",
    onRetry: ({ delayMs }) => void delays.push(delayMs),
    ...options,
    fetch: async (url, { method = "", headers: init, signal }) => {
      const headers = new Headers(init);
      sent.push({ url, method, idempotencyKey: headers.get("Idempotency-Key"), headers });
      const reply = replies.shift();
      if (reply instanceof Response) return reply;
      if (reply === "never")
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      throw reply ?? new Error("more requests than replies");
    },
  });
  return { petstore, sent, delays };
}

/** What the call rejects with. */
export async function rejection(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded");
}
