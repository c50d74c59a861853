import { expect, test } from "bun:test";
import { expectSettings, readDeploy } from "./deploy-files.ts";

const manifests = Object(Bun.YAML.parse(readDeploy("kubernetes/petstore.yaml")));
const find = (kind: string) => manifests.find((each: { kind: string }) => each.kind === kind);
const specOf = (kind: string) => find(kind).spec;
const settings = find("ConfigMap").data;
const deployment = specOf("Deployment");
const pod = deployment.template.spec;
const [container] = pod.containers;

test("everything is in one namespace, and selects the pods of the deployment", () => {
  const [namespace, ...others] = manifests;
  expect(namespace).toMatchObject({ kind: "Namespace", metadata: { name: "petstore" } });
  for (const { metadata } of others) expect(metadata.namespace).toBe("petstore");
  const labels = { "app.kubernetes.io/name": "petstore" };
  expect(deployment.template.metadata.labels).toEqual(labels);
  expect(deployment.selector.matchLabels).toEqual(labels);
  expect(specOf("PodDisruptionBudget").selector.matchLabels).toEqual(labels);
  expect(specOf("Service").selector).toEqual(labels);
});

test("the settings are valid, and Kubernetes adds none", () => {
  expectSettings(settings);
  expect(pod.enableServiceLinks).toBeFalse();
});

test("every port that a probe or the service names exists", () => {
  expect(container.ports).toEqual([
    { name: "http", containerPort: 8080 },
    { name: "admin", containerPort: 8090 },
  ]);
  expect(container).toMatchObject({
    startupProbe: { httpGet: { path: "/livez", port: "admin" } },
    livenessProbe: { httpGet: { path: "/livez", port: "admin" } },
    readinessProbe: { httpGet: { path: "/readyz?exclude=rate-limiter", port: "admin" } },
  });
  expect(settings.PETSTORE_ADMIN_ADDRESS).toEndWith(":8090");
  expect(specOf("Service").ports).not.toBeEmpty();
  for (const { targetPort } of specOf("Service").ports) expect(targetPort).toBe("http");
});

test("the listener for operators is open to Prometheus alone, which scrapes it with the token", () => {
  const monitoring = { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } };
  expect(specOf("NetworkPolicy")).toMatchObject({
    podSelector: deployment.selector,
    ingress: [
      { ports: [{ port: "http" }] },
      { from: [{ namespaceSelector: monitoring }], ports: [{ port: "admin" }] },
    ],
  });
  const authorization = { credentials: { key: "admin-token" } };
  expect(Bun.YAML.parse(readDeploy("kubernetes/pod-monitor.yaml"))).toMatchObject({
    kind: "PodMonitor",
    metadata: { namespace: "petstore" },
    spec: {
      selector: deployment.selector,
      podMetricsEndpoints: [{ port: "admin", path: "/metrics", authorization }],
    },
  });
});

test("an instance is drained before it stops, one at a time, and is not killed before it has stopped", () => {
  expect(specOf("PodDisruptionBudget").maxUnavailable).toBe(1);
  expect(deployment.replicas).toBeGreaterThanOrEqual(2);
  const { readinessProbe, livenessProbe, lifecycle } = container;
  const drainSeconds = lifecycle.preStop.sleep.seconds;
  expect(drainSeconds).toBeGreaterThan(readinessProbe.periodSeconds * readinessProbe.failureThreshold);
  // A stop takes at most 10 seconds.
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drainSeconds + 10 + 5);
  expect(livenessProbe.periodSeconds * livenessProbe.failureThreshold).toBeGreaterThan(10);
});

test("the image runs as the user of the container without writing to its files", () => {
  const [, user] = /^USER (\d+):/m.exec(readDeploy("container/Containerfile")) ?? [];
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
  expect(container.securityContext.readOnlyRootFilesystem).toBeTrue();
});
