import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../src/config/address-types.ts";
import { adminToken } from "../../../src/config/value-types.ts";
import { expectSettings, readDeploy, ROOT } from "./deploy-files.ts";

const DIRECTORY = join(ROOT, "deploy/compose");
const compose = Object(Bun.YAML.parse(readDeploy("compose/compose.yaml")));
const services: Record<string, typeof compose> = compose.services;
const servers = Object.entries(services).flatMap(([name, each]) =>
  name.startsWith("petstore-") ? each : [],
);

/** Where it has one: that in its first network. */
const addressOf = ({ networks }: { networks: object }) => Object.values(networks)[0]?.ipv4_address;

const names = (list: object = []): string[] => (Array.isArray(list) ? list : Object.keys(list));

test("two servers, PostgreSQL, HAProxy and Prometheus; only HAProxy has a port outside", () => {
  const others = ["haproxy", "postgres", "prometheus"];
  expect(Object.keys(services)).toEqual(["petstore-a", "petstore-b", ...others]);
  expect(Object.entries(services).flatMap(([name, { ports }]) => (ports ? name : []))).toEqual(["haproxy"]);
});

test("every network, volume, secret and service that a service names is defined", () => {
  for (const { networks, volumes = [], secrets, depends_on } of Object.values(services)) {
    expect(names(networks).filter((name) => !(name in compose.networks))).toEqual([]);
    expect(names(secrets).filter((name) => !(name in compose.secrets))).toEqual([]);
    expect(names(depends_on).filter((name) => !(name in services))).toEqual([]);
    for (const volume of volumes) {
      const [source = ""] = volume.split(":");
      if (!source.startsWith(".")) expect(compose.volumes).toHaveProperty(source);
      else if (!source.startsWith("./secrets/")) expect(existsSync(resolve(DIRECTORY, source))).toBeTrue();
    }
  }
});

test("the servers have valid settings, and enough time to stop", () => {
  for (const server of servers) {
    expectSettings(server.environment);
    expect(existsSync(resolve(DIRECTORY, server.build.context, server.build.dockerfile))).toBeTrue();
    // Two seconds of drain delay, and ten for the requests in progress.
    expect(Number.parseInt(server.stop_grace_period, 10)).toBeGreaterThanOrEqual(17);
  }
});

test("the addresses are those in the configuration of HAProxy, and the servers trust its own", () => {
  const configured = [...readDeploy("haproxy/haproxy.cfg").matchAll(/^ +server \w+ (\S+):8080$/gm)];
  expect(servers.map(addressOf)).toEqual(configured.map(([, address]) => address));
  expect(addressOf(services["haproxy"])).toBe(servers[0]?.environment.PETSTORE_TRUST_PROXY);
});

test("each server has its listener for operators in their network, where Prometheus scrapes it", () => {
  const listeners = servers.map(({ environment }) => environment.PETSTORE_ADMIN_ADDRESS);
  expect(servers.map(({ networks }) => networks.operators.ipv4_address)).toEqual(
    listeners.map((listener) => listener.replace(/:8090$/, "")),
  );
  expect(
    Object.entries(services).flatMap(([name, { networks }]) =>
      names(networks).includes("operators") ? name : [],
    ),
  ).toEqual(["petstore-a", "petstore-b", "prometheus"]);
  expect<unknown>(Bun.YAML.parse(readDeploy("compose/prometheus.yml"))).toMatchObject({
    scrape_configs: [{ static_configs: [{ targets: listeners }] }],
  });
});

test("Prometheus has the token of the operator metrics, and no other secret", () => {
  const [scrape] = Object(Bun.YAML.parse(readDeploy("compose/prometheus.yml"))).scrape_configs;
  const { credentials_file: file } = scrape.authorization;
  expect(services["prometheus"].secrets.map((name: string) => `/run/secrets/${name}`)).toEqual([file]);
  for (const { environment, secrets } of servers) {
    expect(environment.PETSTORE_METRICS_TOKEN_FILE).toBe(file);
    expect(environment.PETSTORE_ADMIN_TOKEN_FILE).not.toBe(file);
    const given = Object.entries<string>(environment).flatMap(([name, value]) =>
      name.endsWith("_FILE") ? value : [],
    );
    expect(given.toSorted()).toEqual(secrets.map((name: string) => `/run/secrets/${name}`).toSorted());
  }
});

test("images and actions have an exact version", () => {
  const images = Object.values(services).map(({ image }) => image);
  const workflow = readFileSync(join(ROOT, ".github/workflows/ci.yml"), "utf8");
  const inWorkflow = [...workflow.matchAll(/ image: (\S+)/g)].map(([, image]) => image);
  for (const image of [...images, ...inWorkflow]) expect(image).toMatch(/:v?\d+\.\d+\.?\d*(?:-\w+)?$/);
  for (const [, version] of workflow.matchAll(/uses: \S+@(\S+)/g)) expect(version).toMatch(/^[\da-f]{40}$/);
});

test("make-secrets makes every secret and the certificate, valid and private, and keeps what exists", () => {
  const directory = temporaryDirectory("compose");
  copyFileSync(join(DIRECTORY, "make-secrets"), join(directory, "make-secrets"));
  const run = () => Bun.spawnSync(["sh", join(directory, "make-secrets")], { stderr: "pipe" });
  expect(run()).toMatchObject({ exitCode: 0 });
  const read = (name: string) => readFileSync(join(directory, "secrets", name), "utf8");
  const made = readdirSync(join(directory, "secrets"));
  const secrets: readonly { file: string }[] = Object.values(compose.secrets);
  const files = secrets.map(({ file }) => file.replace("./secrets/", ""));
  expect(made.toSorted()).toEqual([...files, "petstore.pem"].toSorted());
  expect(statSync(join(directory, "secrets")).mode & 0o777).toBe(0o700);
  expect(postgresUrl.parse(read("database-url").trim())).toBeDefined();
  expect(read("database-url")).toContain(read("postgres-password").trim());
  const tokens = ["admin-token", "metrics-token"].map((name) => adminToken.parse(read(name).trim()));
  expect(tokens).not.toContain(undefined);
  expect(new Set(tokens).size).toBe(2);
  expect(read("petstore.pem")).toMatch(/BEGIN CERTIFICATE[\s\S]*BEGIN PRIVATE KEY/);
  const before = made.map(read);
  expect(run()).toMatchObject({ exitCode: 0 });
  expect(made.map(read)).toEqual(before);
});
