import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expectSettings, readDeploy, ROOT } from "../system/deploy/deploy-files.ts";

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
  // Its file would be in a pod without a shell.
  expect(settings.PETSTORE_NO_FIRST_KEY).toBe("true");
  // Commands would print it beside a live key.
  expect(JSON.stringify(settings)).not.toContain("example");
});

test("every port that a probe or the service names exists", () => {
  expect(container.ports).toEqual([
    { name: "http", containerPort: 8080 },
    { name: "admin", containerPort: 8090 },
  ]);
  expect(container).toMatchObject({
    startupProbe: { httpGet: { path: "/livez", port: "admin" } },
    livenessProbe: { httpGet: { path: "/livez", port: "admin" } },
    readinessProbe: { httpGet: { path: "/readyz", port: "admin" } },
  });
  expect(settings.PETSTORE_ADMIN_ADDRESS).toEndWith(":8090");
  expect(specOf("Service").ports).not.toBeEmpty();
  for (const { targetPort } of specOf("Service").ports) expect(targetPort).toBe("http");
});

test("clients reach the API, and only Prometheus the listener for operators", () => {
  const monitoring = { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } };
  const { ingress, ...policy } = specOf("NetworkPolicy");
  expect(policy).toEqual({ podSelector: deployment.selector, policyTypes: ["Ingress"] });
  expect(ingress).toEqual([
    { ports: [{ port: "http" }] },
    { from: [{ namespaceSelector: monitoring }], ports: [{ port: "admin" }] },
  ]);
});

test("Prometheus scrapes with the token of the operator metrics", () => {
  const [monitor] = [Object(Bun.YAML.parse(readDeploy("kubernetes/pod-monitor.yaml")))];
  expect(monitor).toMatchObject({
    kind: "PodMonitor",
    metadata: { namespace: "petstore" },
    spec: { selector: deployment.selector, podMetricsEndpoints: [{ port: "admin", path: "/metrics" }] },
  });
  const { name, key } = monitor.spec.podMetricsEndpoints[0].authorization.credentials;
  const [secrets] = pod.volumes;
  const [mount] = container.volumeMounts;
  expect([name, mount.name]).toEqual([secrets.secret.secretName, secrets.name]);
  expect(settings.PETSTORE_METRICS_TOKEN_FILE).toBe(`${mount.mountPath}/${key}`);
  expect(settings.PETSTORE_ADMIN_TOKEN_FILE).not.toBe(settings.PETSTORE_METRICS_TOKEN_FILE);
  // Every file that a setting names is in the secret of the documentation.
  const command = readFileSync(join(ROOT, "docs/deployment.md"), "utf8");
  for (const [variable, path] of Object.entries<string>(settings))
    if (variable.endsWith("_FILE")) expect(command).toContain(` --from-literal=${basename(path)}=`);
});

test("a server is drained before it stops, one at a time, and is not killed before it has stopped", () => {
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
