/**
 * Runs the commands of the documentation pages on containers and on upgrading with compose, but without Docker. The commands of Dockerfile
 * and compose.yaml run as processes in a folder with the image's files. Builds no image, and does not test a container's sandbox.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { load, YAML11_SCHEMA } from "js-yaml";
import { blocksIn } from "../docs/pages.js";
import { type Content, createContent, expectContent } from "../harness/app-content.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import {
  type DocsReader,
  fillPlaceholders,
  freePort,
  freshFolder,
  lastLine,
  ROOT,
  reader,
  type StartedService,
} from "../harness/reader.js";

type Variables = Record<string, string>;

const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const DOCKERFILE = read("Dockerfile");
const IMAGE_STAGE = DOCKERFILE.slice(DOCKERFILE.lastIndexOf("\nFROM "));
const quoted = (words: readonly string[]) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
const commandOf = (instruction: string) =>
  JSON.parse(
    new RegExp(`^\\s*${instruction} (\\[.*\\])$`, "m").exec(IMAGE_STAGE.replaceAll("\\\n", ""))![1]!,
  ) as string[];

/**
 * Creates a folder with the contents of the image's last stage. Its node_modules is this checkout's, and so includes development packages.
 */
function createImageFolder(): string {
  const folder = freshFolder();
  for (const [, from, to] of IMAGE_STAGE.matchAll(/^COPY --from=build (.+) (\S+)$/gm)) {
    for (const path of from!.split(" ").map((imagePath) => imagePath.replace("/app/", ""))) {
      const target = join(folder, to!.endsWith("/") ? path : to!);
      mkdirSync(dirname(target), { recursive: true });
      if (path === "node_modules") symlinkSync(join(ROOT, path), target);
      else execFileSync("cp", ["-a", join(ROOT, path), target]);
    }
  }
  return folder;
}

/** Replaces variables in a text as compose does. @throws Error if a required variable is not set, with the message in its placeholder */
const interpolated = (text: string, variables: Variables): string =>
  text.replace(/\$\{([A-Z_]+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind: string, words: string) => {
    if (variables[name]) return variables[name];
    if (kind === "?") throw new Error(words);
    return words ?? "";
  });

describe("the page on containers", function () {
  this.timeout(600_000);
  const [compose] = blocksIn("docs/operate/containers.md", "sh", 6);
  const [exportLine, up, bootstrapLine, credentialsLine] = compose!.trim().split("\n");
  let database: FreshDatabase;
  let operator: DocsReader;
  let exported: Variables;
  let api: StartedService | undefined;
  let runner: StartedService | undefined;
  let port: number;
  let content: Content;
  let token: string;

  before(async () => {
    database = await emptyDatabase();
    operator = reader(createImageFolder());
    port = await freePort();
  });
  after(async () => {
    await runner?.stop();
    await api?.stop();
    operator.cleanUp();
    await database.drop();
  });

  /** Returns a container's variables: from the image, from compose.yaml, and values for this machine, such as a folder for `/data`. */
  function environmentOf(service: "api" | "runner", servicePort: number): Variables {
    // Compose replaces variables only in the values of the parsed file.
    const parsed = JSON.stringify(load(read("compose.yaml"), { schema: YAML11_SCHEMA }));
    const { services } = JSON.parse(interpolated(parsed, exported)) as {
      services: Record<string, { environment: Variables }>;
    };
    const image = Object.fromEntries(
      [.../^ENV (.*)$/m.exec(IMAGE_STAGE)![1]!.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    );
    const { environment } = services[service]!;
    expect(environment["DATABASE_URL"]).to.equal(`postgres://svc:${exported["POSTGRES_PASSWORD"]}@database/svc`);
    const here = {
      DATABASE_URL: database.url,
      PORT: String(servicePort),
      DATA_DIR: join(operator.folder, `data-${service}`),
    };
    // This machine may not have the image's version of Node, so the processes use this machine's version.
    const PATH = `${dirname(process.execPath)}:${process.env["PATH"]}`;
    return { ...image, ...environment, ...here, PATH };
  }

  it("exports what compose.yaml requires", async () => {
    expect(() => interpolated(read("compose.yaml"), {})).to.throw("set POSTGRES_PASSWORD");
    const printed = await operator.paste(`${exportLine}\nprintf '%s\\n' "$POSTGRES_PASSWORD" "$SETTINGS_KEY"`);
    const [password, key] = printed.trim().split("\n");
    exported = { POSTGRES_PASSWORD: password!, SETTINGS_KEY: key! };
    expect([password!.length, Buffer.from(key!, "base64").length]).to.deep.equal([32, 32]);
    expect(up).to.equal("docker compose up --detach --build");
  });

  it("starts the API with the image's command, healthy by the image's check", async () => {
    const environment = environmentOf("api", port);
    api = await operator.start(quoted(commandOf("CMD")), environment);
    const check = quoted(commandOf("HEALTHCHECK .* CMD"));
    await operator.paste(check, environment);
    const elsewhere = await operator.paste(check, { ...environment, PORT: String(await freePort()) }).then(
      () => "healthy",
      () => "unhealthy",
    );
    expect(elsewhere).to.equal("unhealthy");
  });

  it("creates the first app with the page's command, and a runner container runs its actions", async () => {
    const environment = environmentOf("api", port);
    const bootstrap = fillPlaceholders(bootstrapLine!, { "docker compose run --rm api ": "" });
    expect(lastLine(await operator.paste(bootstrap, environment)).setupLink).to.contain("http://localhost:4000/");
    const show = fillPlaceholders(credentialsLine!, {
      "docker compose exec api ": "",
      "/data": environment["DATA_DIR"]!,
    });
    const { tokens } = JSON.parse(await operator.paste(show));
    const ofRunner = environmentOf("runner", await freePort());
    expect(ofRunner["PUBLIC_URL"]).to.equal("http://api:4000");
    const url = `http://127.0.0.1:${port}`;
    runner = await operator.start(quoted(commandOf("CMD")), { ...ofRunner, PUBLIC_URL: url });
    token = tokens.editor;
    content = await createContent(url, token);
    await expectContent(url, token, content);
  });

  it("writes a backup with the commands of the upgrade page, which another machine restores", async () => {
    const environment = environmentOf("api", port);
    const [makeKey, backup, copy] = blocksIn("docs/operate/upgrading.md", "sh", 14)[3]!.trim().split("\n");
    const data = environment["DATA_DIR"]!;
    await operator.paste(fillPlaceholders(makeKey!, { "docker compose exec api ": "", "/data": data }), environment);
    const printed = await operator.paste(
      fillPlaceholders(backup!, { "docker compose exec api ": "", "/data": data }),
      environment,
    );
    await operator.paste(fillPlaceholders(copy!, { "docker compose cp api:/data": `cp ${data}` }));
    const other = await emptyDatabase();
    const restore = "node --no-node-snapshot dist/src/cli/restore.js before-upgrade-* --key-file backup-key";
    const variables = { ...environment, DATABASE_URL: other.url, DATA_DIR: join(operator.folder, "data-restored") };
    const restored = lastLine(await operator.paste(restore, variables));
    await other.drop();
    expect([restored.rows, restored.files]).to.deep.equal([lastLine(printed).rows, 1]);
  });

  it("serves the same data from containers of a new image, with the variables and the volume of the old ones", async () => {
    await runner!.stop();
    await api!.stop();
    const image = reader(createImageFolder());
    api = await image.start(quoted(commandOf("CMD")), environmentOf("api", port));
    const url = `http://127.0.0.1:${port}`;
    runner = await image.start(quoted(commandOf("CMD")), {
      ...environmentOf("runner", await freePort()),
      PUBLIC_URL: url,
    });
    await expectContent(url, token, content);
    await runner.stop();
    await api.stop();
    runner = undefined;
    api = undefined;
    image.cleanUp();
  });
});
