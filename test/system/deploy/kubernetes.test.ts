import { expect, test } from "bun:test";
import packageJson from "../../../package.json" with { type: "json" };
import { expectSettings, readDeploy } from "./deploy-files.ts";

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

interface Labels {
  readonly "app.kubernetes.io/name": string;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly replicas: number;
    readonly maxUnavailable: number;
    readonly selector: { readonly matchLabels: Labels } & Labels;
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly enableServiceLinks: boolean;
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number };
        readonly containers: readonly Container[];
      };
    };
    readonly ports: readonly { readonly targetPort: string }[];
  };
}

interface Container {
  readonly image: string;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
}

const manifests = Bun.YAML.parse(readDeploy("kubernetes/petstore.yaml")) as readonly Manifest[];
const find = (kind: string) => manifests.find((manifest) => manifest.kind === kind);
const deployment = find("Deployment")?.spec;
const pod = deployment?.template.spec;
const container = pod?.containers[0];

test("everything is in one namespace, and selects the pods of the deployment", () => {
  const [namespace, ...others] = manifests;
  expect(namespace).toMatchObject({ kind: "Namespace", metadata: { name: "petstore" } });
  expect(new Set(others.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["petstore"]));
  const labels = deployment?.template.metadata.labels;
  expect(labels).toEqual({ "app.kubernetes.io/name": "petstore" });
  expect(deployment?.selector.matchLabels).toEqual(labels);
  expect(find("PodDisruptionBudget")?.spec?.selector.matchLabels).toEqual(labels);
  expect<unknown>(find("Service")?.spec?.selector).toEqual(labels);
});

test("the settings are valid, and Kubernetes adds none", () => {
  expectSettings(find("ConfigMap")?.data ?? {});
  expect(pod?.enableServiceLinks).toBeFalse();
});

test("every port that a probe or the service names exists", () => {
  const ports = container?.ports.map(({ name }) => name);
  expect(container?.ports).toEqual([
    { name: "http", containerPort: 8080 },
    { name: "admin", containerPort: 8090 },
  ]);
  expect(container).toMatchObject({
    startupProbe: { httpGet: { path: "/livez", port: "admin" } },
    livenessProbe: { httpGet: { path: "/livez", port: "admin" } },
    readinessProbe: { httpGet: { path: "/readyz?exclude=rate-limiter", port: "admin" } },
  });
  expect(find("ConfigMap")?.data?.["PETSTORE_ADMIN_ADDRESS"]).toEndWith(":8090");
  for (const { targetPort } of find("Service")?.spec?.ports ?? []) expect(ports).toContain(targetPort);
});

test("the listener for operators is open to Prometheus alone, which scrapes it with the token", () => {
  expect<unknown>(find("NetworkPolicy")?.spec).toMatchObject({
    podSelector: { matchLabels: deployment?.selector.matchLabels },
    ingress: [
      { ports: [{ port: "http" }] },
      {
        from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }],
        ports: [{ port: "admin" }],
      },
    ],
  });
  expect(Bun.YAML.parse(readDeploy("kubernetes/pod-monitor.yaml"))).toMatchObject({
    kind: "PodMonitor",
    metadata: { namespace: "petstore" },
    spec: {
      selector: { matchLabels: deployment?.selector.matchLabels },
      podMetricsEndpoints: [
        { port: "admin", path: "/metrics", authorization: { credentials: { key: "admin-token" } } },
      ],
    },
  });
});

test("an instance is drained before it stops, one at a time, and is not killed before it has stopped", () => {
  expect(find("PodDisruptionBudget")?.spec?.maxUnavailable).toBe(1);
  expect(deployment?.replicas).toBeGreaterThanOrEqual(2);
  const { periodSeconds = 0, failureThreshold = 0 } = container?.readinessProbe ?? {};
  const drainSeconds = container?.lifecycle.preStop.sleep.seconds ?? 0;
  expect(drainSeconds).toBeGreaterThan(periodSeconds * failureThreshold);
  // A stop takes at most 10 seconds.
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drainSeconds + 10 + 5);
  const { livenessProbe } = container ?? {};
  expect((livenessProbe?.periodSeconds ?? 0) * (livenessProbe?.failureThreshold ?? 0)).toBeGreaterThan(10);
});

test("the image is this version, and runs as the user of the container without writing to its files", () => {
  expect(container?.image).toEndWith(`/petstore:${packageJson.version}`);
  const [, user] = /^USER (\d+):/m.exec(readDeploy("container/Containerfile")) ?? [];
  expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
  expect(container?.securityContext.readOnlyRootFilesystem).toBeTrue();
});
