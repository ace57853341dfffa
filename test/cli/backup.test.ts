import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService } from "../harness/service.js";

interface CommandOutput {
  code: number;
  stdout: string;
  stderr: string;
}

function command(
  name: "backup" | "restore",
  args: string[],
  environment: Record<string, string>,
): Promise<CommandOutput> {
  const program = fileURLToPath(new URL(`../../src/cli/${name}.js`, import.meta.url));
  return new Promise((resolve) => {
    const options = { env: { ...programEnvironment(), ...environment } };
    execFile(process.execPath, ["--no-node-snapshot", program, ...args], options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

async function mediaPrefixOf(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client
    .query<{ space: string }>("SELECT space FROM media_store")
    .then(({ rows }) => rows[0]!.space)
    .finally(() => client.end());
}

describe("npm run backup and restore", function () {
  this.timeout(180_000);
  let targetDatabase: FreshDatabase;
  let folder: string;
  let to: Record<string, string>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-backup-cli-"));
    targetDatabase = await emptyDatabase();
    to = { DATABASE_URL: targetDatabase.url, DATA_DIR: join(folder, "data") };
    writeFileSync(join(folder, "passphrase"), "correct horse battery\n");
    writeFileSync(join(folder, "short"), "hello\n");
    writeFileSync(join(folder, "key"), `${Buffer.alloc(32, 3).toString("base64")}\n`);
    writeFileSync(join(folder, "no-key"), "AAAA\n");
  });
  after(async () => {
    await targetDatabase.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("require a key or passphrase, and report an error in one line", async () => {
    const file = join(folder, "never");
    const wrong: [string[], RegExp][] = [
      [[file], /^Set --passphrase-file or --key-file to encrypt the backup, or --unencrypted/],
      [[file, "--unencrypted", "--key-file", join(folder, "no-key")], /must contain 32 bytes in base64/],
      [[file, "--passphrase-file", join(folder, "short")], /must contain a passphrase of 12 characters/],
    ];
    for (const [args, words] of sampleOf(wrong, 0, 3)) {
      const { code, stdout, stderr } = await command("backup", args, to);
      expect([code, stdout, existsSync(file)], stderr).to.deep.equal([1, "", false]);
      expect(stderr).to.match(words);
    }
  });

  longTest("transfer everything including the keys; without keys or encryption, they say so", async () => {
    const service = await startTestService({ ROLES: "api" });
    try {
      const from = { DATABASE_URL: service.databaseUrl, DATA_DIR: service.dataDir };
      const key = ["--key-file", join(folder, "key")];
      const [sealed, open] = [join(folder, "sealed"), join(folder, "open")];
      const made = await command("backup", [sealed, ...key], from);
      expect([made.code, made.stderr]).to.deep.equal([0, ""]);
      const plain = await command("backup", [open, "--unencrypted"], from);
      expect(plain.stderr).to.match(/^warning: the file is not encrypted: /);

      const first = await command("restore", [open], to);
      expect(first.stderr).to.match(
        /^warning: the backup contains no keys, .* set SETTINGS_KEY before the service starts\n$/,
      );
      expect([first.code, JSON.parse(first.stdout).rows > 5]).to.deep.equal([0, true]);
      const media = join(to["DATA_DIR"]!, "media");
      const space = await mediaPrefixOf(to["DATABASE_URL"]!);
      mkdirSync(join(media, space, "aa"), { recursive: true });
      writeFileSync(join(media, space, "aa", "a".repeat(32)), "replaced");
      const replaced = await command("restore", [sealed, ...key, "--replace"], to);
      expect(existsSync(join(media, space)), "the replaced files").to.equal(false);
      expect([replaced.code, replaced.stderr]).to.deep.equal([0, ""]);
      const keyIn = (dataDir: string) => readFileSync(join(dataDir, "settings-key"), "utf8");
      expect(keyIn(to["DATA_DIR"]!)).to.equal(keyIn(service.dataDir));
    } finally {
      await service.stop();
    }
  });
});
