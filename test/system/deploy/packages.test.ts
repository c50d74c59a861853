import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import {
  ALL_PLATFORMS,
  makeDebianPackage,
  makeRedHatPackage,
  PACKAGE_FILES,
} from "../../../scripts/packages.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { DPKG_DEB, executable, RPMBUILD } from "../../../trials/harness/programs.ts";
import { readDeploy } from "./deploy-files.ts";

const directory = temporaryDirectory("packages");
const program = join(directory, "petstore");
const [dpkgDeb] = [executable(DPKG_DEB), executable(RPMBUILD)];

function out(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
}

beforeAll(() => {
  // What is packed, the release check compares; here it is small.
  writeFileSync(program, "#!/bin/sh\necho the executable\n");
  for (const platform of ALL_PLATFORMS) {
    makeDebianPackage(directory, platform, program);
    makeRedHatPackage(directory, platform, program);
  }
}, 60_000);

const FILES = [
  "/etc/logrotate.d/petstore",
  "/etc/petstore/production.env",
  "/usr/bin/petstore",
  "/usr/lib/systemd/system/petstore-backup.service",
  "/usr/lib/systemd/system/petstore-backup.timer",
  "/usr/lib/systemd/system/petstore@.service",
  "/usr/lib/sysusers.d/petstore.conf",
  "/usr/share/bash-completion/completions/petstore",
  "/usr/share/doc/petstore/CHANGELOG.md.gz",
  "/usr/share/doc/petstore/copyright",
  "/usr/share/doc/petstore/examples/haproxy/haproxy.cfg",
  "/usr/share/doc/petstore/examples/limits.yaml",
  "/usr/share/doc/petstore/examples/prometheus/alerts.yml",
  "/usr/share/fish/vendor_completions.d/petstore.fish",
];
const SETTINGS = ["/etc/logrotate.d/petstore", "/etc/petstore/production.env"];

describe.each([
  ["x64", "amd64", "x86_64"],
  ["arm64", "arm64", "aarch64"],
] as const)("for %s", (platform, debian, redHat) => {
  const deb = join(directory, PACKAGE_FILES.debian(platform));
  const rpm = join(directory, PACKAGE_FILES.redHat(platform));

  test("the Debian package has the version, the processor, the files and the settings", () => {
    const field = (name: string) => out(dpkgDeb, "--field", deb, name);
    expect([field("Version"), field("Architecture")]).toEqual([packageJson.version, debian]);
    const tree = temporaryDirectory("deb");
    out(dpkgDeb, "--raw-extract", deb, tree);
    for (const path of [...FILES, "/usr/share/zsh/vendor-completions/_petstore"])
      expect(statSync(join(tree, path)).isFile()).toBe(true);
    expect(readFileSync(join(tree, "DEBIAN/conffiles"), "utf8").trim().split("\n").toSorted()).toEqual(
      SETTINGS,
    );
    // Nothing belongs to the user who made the package, and only the group of the service may read the settings.
    const listed = out(dpkgDeb, "--contents", deb).split("\n");
    expect(listed.filter((line) => !line.includes(" root/root "))).toEqual([]);
    expect(listed.find((line) => line.endsWith("production.env"))).toStartWith("-rw-r-----");
    expect(listed.find((line) => line.endsWith(" ./etc/petstore/"))).toStartWith("drwxr-x---");
    expect(out(join(tree, "usr/bin/petstore"))).toBe("the executable");
    for (const script of ["postinst", "prerm", "postrm"]) out("sh", "-n", join(tree, "DEBIAN", script));
  });

  test("the Red Hat package has the same", () => {
    const query = (...flags: string[]) => out("rpm", "--query", ...flags, "--package", rpm);
    expect(query("--queryformat", "%{VERSION} %{ARCH}")).toBe(`${packageJson.version} ${redHat}`);
    const files = query("--list").split("\n");
    expect(
      [...FILES, "/usr/share/zsh/site-functions/_petstore"].filter((path) => !files.includes(path)),
    ).toEqual([]);
    expect(query("--configfiles").split("\n")).toEqual(SETTINGS);
    const requirements = query("--requires")
      .split("\n")
      .filter((line) => !line.startsWith("rpmlib"));
    expect([...new Set(requirements)]).toEqual(["/bin/sh", "glibc >= 2.17", "systemd"]);
    const tree = temporaryDirectory("rpm");
    out("sh", "-c", `rpm2archive --nocompression - < ${rpm} | tar -x -C ${tree}`);
    expect(out(join(tree, "usr/bin/petstore"))).toBe("the executable");
    const settings = statSync(join(tree, "etc/petstore/production.env"));
    expect(settings.mode & 0o777).toBe(0o640);
  });
});

test("the same sources make the same packages", () => {
  const again = temporaryDirectory("again");
  makeDebianPackage(again, "x64", program);
  const name = PACKAGE_FILES.debian("x64");
  expect(readFileSync(join(again, name)).equals(readFileSync(join(directory, name)))).toBe(true);
});

test("a removal keeps the data: no script of the packages deletes more than links of systemd", () => {
  const scripts = ["postinst", "prerm", "postrm", "petstore.spec"].map((name) =>
    readDeploy(`packages/${name}`),
  );
  const removals = scripts.flatMap((text) => text.match(/^ *rm .*$/gm) ?? []).map((line) => line.trim());
  expect(new Set(removals)).toEqual(
    new Set(["rm -f /etc/systemd/system/multi-user.target.wants/petstore@*.service"]),
  );
});

test("the settings of an installation by hand can be read by the service after the first package", () => {
  // A package manager keeps the mode of a file that it did not install.
  for (const name of ["postinst", "petstore.spec"]) {
    const paths = "/etc/petstore /etc/petstore/production.env";
    expect(readDeploy(`packages/${name}`)).toMatch(
      new RegExp(`^ +chgrp petstore ${paths}\n +chmod g\\+rX ${paths}$`, "m"),
    );
  }
});

test("the units and the package agree on the user, the executable and the directories", () => {
  for (const unit of ["petstore@.service", "petstore-backup.service"]) {
    const text = readDeploy(`systemd/${unit}`);
    expect(text).toContain("\nUser=petstore\n");
    expect(text).toMatch(/\nExecStart=\/usr\/bin\/petstore /);
  }
  expect(readDeploy("packages/sysusers.conf")).toMatch(/^u petstore /m);
});
