import { expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtExecutable } from "../../../scripts/built-executable.ts";
import { makeDebianPackage } from "../../../scripts/packages.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { runProgram } from "../../../trials/harness/child.ts";
import { ROOT } from "./deploy-files.ts";
// The commands of docs/upgrading.md for one machine, unattended, in a copy of this system that is thrown away.
setDefaultTimeout(120_000);

/** The commands of the block that has a text, for this processor. */
function commandsWith(text: string): string {
  const page = readFileSync(join(ROOT, "docs/upgrading.md"), "utf8");
  const blocks = Array.from(page.matchAll(/^```sh\n(.*?)^```$/gms), ([, commands = ""]) => commands);
  const commands = blocks.find((block) => block.includes(text));
  if (commands === undefined) throw new Error(`no block of docs/upgrading.md has ${text}`);
  return commands.replace("_amd64", process.arch === "arm64" ? "_arm64" : "_amd64");
}

/** What an installation by hand has left, as the documentation of 1.2.0 said. */
const BY_HAND = `
echo '#!/bin/sh' > /usr/local/bin/petstore
echo '[Service]' > /etc/systemd/system/petstore@.service
mkdir -p /etc/petstore /etc/logrotate.d /var/backups/petstore
printf 'PETSTORE_DATA=/var/lib/petstore\\n# by hand\\n' > /etc/petstore/production.env
chmod 600 /etc/petstore/production.env
echo '/var/log/petstore/*.log { daily }' > /etc/logrotate.d/petstore
echo 'a backup' > /var/backups/petstore/production-2026-11-15T03-00-00Z.db
`;

/** Prints what systemd would be asked for, and keeps apt from the network. */
const SYSTEM = `
printf '#!/bin/sh\\necho "systemctl $*"\\n' > /usr/local/sbin/systemctl
chmod 755 /usr/local/sbin/systemctl
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
echo 'APT::Install-Recommends "false";' > /etc/apt/apt.conf.d/99-test
`;

const CHECKS = `
dpkg-query --show --showformat '\${Status}\\n' petstore
cat /etc/petstore/production.env
stat --format '%n %U:%G %a' /etc/petstore /etc/petstore/production.env /var/backups/petstore/*.db /var/lib/petstore
grep 'su petstore' /etc/logrotate.d/petstore
command -v petstore
cd /
petstore keys list 2>&1 || true
petstore migrate 2> /dev/null
runuser -u petstore -- petstore keys create --name app --plan free 2>&1 | head -2
petstore --data /elsewhere keys list 2>&1 || true
runuser -u nobody -- petstore keys list 2>&1 || true
`;

/** What they print: the settings of before, who may read them, and which data commands work on. */
const EXPECTED = `install ok installed
PETSTORE_DATA=/var/lib/petstore
# by hand
/etc/petstore root:petstore 755
/etc/petstore/production.env root:petstore 640
/var/backups/petstore/production-2026-11-15T03-00-00Z.db petstore:petstore 644
/var/lib/petstore petstore:petstore 700
    su petstore petstore
/usr/bin/petstore
petstore: the settings are those of /etc/petstore/production.env
petstore: there is no database in production (data: /var/lib/petstore): /var/lib/petstore/production.db does not exist
Made the tables of production (data: /var/lib/petstore) (version N).
petstore: the settings are those of /etc/petstore/production.env
Created key 1 "app" in production (data: /var/lib/petstore): free plan, 60 requests per minute, 1,000 per day
petstore: there is no database in production (data: /elsewhere): /elsewhere/production.db does not exist
petstore: /etc/petstore/production.env has the settings of the service, and cannot be read: permission denied; run the command as root or as the user petstore, or name other data with --data or --database-url
`;

/** Runs a script as root on a copy of this system, whose changes are in memory and end with it. */
async function inCopyOfSystem(script: string, files: string) {
  const directory = temporaryDirectory("copy");
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user", "--map-auto"];
  const mounts = `
set -eu
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
mount -t proc proc "$0/root/proc"
mount --rbind /dev "$0/root/dev"
mount -t tmpfs tmpfs "$0/root/tmp"
mkdir -p "$0/root/root"
cp -r "$1/." "$0/root/root/"
cd "$0/root"
exec chroot . sh -eu -c 'cd /root; . ./script' < /dev/null`;
  writeFileSync(join(files, "script"), script);
  const unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", ...asRoot];
  return runProgram([...unshare, "sh", "-c", mounts, directory, files]);
}

test("the first package over an installation by hand, and its commands", async () => {
  const files = temporaryDirectory("files");
  const placeholder = join(temporaryDirectory("placeholder"), "petstore");
  writeFileSync(placeholder, "#!/bin/sh\n");
  makeDebianPackage(files, process.arch === "arm64" ? "arm64" : "x64", placeholder);
  copyFileSync(await builtExecutable(), join(files, "petstore"));
  const script = [
    SYSTEM,
    BY_HAND,
    commandsWith("rm -f /usr/local/bin/petstore"),
    "echo INSTALLED",
    // To pack the executable itself takes a minute.
    "install -m 755 petstore /usr/bin/petstore",
    CHECKS,
  ];
  const { code, out, err } = await inCopyOfSystem(script.join("\n"), files);
  expect({ code, err: code === 0 ? "" : err + out }).toEqual({ code: 0, err: "" });
  const [installation = "", checks = ""] = out.split("INSTALLED\n");
  expect(installation).toStartWith("systemctl stop petstore@8080\n");
  expect(installation).toEndWith("systemctl start petstore@8080\n");
  expect(checks.replace(/\(version \d+\)/, "(version N)").replace(/; name it .*/g, "")).toBe(EXPECTED);
});
