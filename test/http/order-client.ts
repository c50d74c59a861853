import { postgresUrl } from "../../harness/postgres.ts";
import { type ApiRequest, type Service, startService } from "../service.ts";

export const DATABASES = ["SQLite", "PostgreSQL"] as const;

export async function startServiceOn(database: (typeof DATABASES)[number]): Promise<Service> {
  return startService(database === "SQLite" ? {} : { databaseUrl: await postgresUrl() });
}

export interface OrderClient {
  readonly newPet: () => Promise<number>;
  readonly petStatus: (id: number) => Promise<string | undefined>;
  readonly place: (petId: number, headers?: Record<string, string>) => ReturnType<Service["call"]>;
  /** Places an order for a new pet. */
  readonly newOrder: () => Promise<{ id: number; petId: number }>;
  /** Sends a request to the path of an order: GET unless it says otherwise. */
  readonly onOrder: (id: number | string, request?: Partial<ApiRequest>) => ReturnType<Service["call"]>;
  readonly update: (id: number | string, status: string) => ReturnType<Service["call"]>;
  /** The identifiers of the orders that are listed. */
  readonly list: (query?: string) => Promise<number[]>;
}

/** Requests of one API key. */
export function orderClient(service: Service, key: string): OrderClient {
  const send = (request: ApiRequest) => service.call({ key, ...request });
  const client: OrderClient = {
    newPet: async () =>
      idOf(await send({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } })),
    petStatus: async (id) => ((await send({ path: `/pets/${id}` })).json as { status?: string }).status,
    place: (petId, headers = {}) => send({ method: "POST", path: "/store/orders", body: { petId }, headers }),
    async newOrder() {
      const petId = await client.newPet();
      return { id: idOf(await client.place(petId)), petId };
    },
    onOrder: (id, request) => send({ path: `/store/orders/${id}`, ...request }),
    update: (id, status) => client.onOrder(id, { method: "PATCH", body: { status } }),
    async list(query = "?limit=100") {
      const { json } = await send({ path: `/store/orders${query}` });
      return (json as { id: number }[]).map(({ id }) => id);
    },
  };
  return client;
}

export const idOf = ({ json }: { json: unknown }) => (json as { id: number }).id;
