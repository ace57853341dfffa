/** Pastes every command of the documents into a shell. One service serves all pages; each page has its own app and folder. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { actionOf } from "../../src/cli/reference/svc-calls.js";
import { NAMESPACES } from "../../src/cli/reference/svc-examples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { type Block, beginningOf, blocksOf, PAGES, ROOT, readPage } from "./pages.js";
import { pastedShell } from "./pasted-shell.js";
import { differences, lastJson } from "./response.js";

const RUN = ["sh", "graphql"];
const isDone = ({ language, file, isResponse }: Block) => RUN.includes(language) || file !== null || isResponse;

/** Returns the blocks of a page, preceded by those that the page requires. */
function steps(page: string): Block[] {
  const text = readPage(page);
  const before = beginningOf(text);
  const required = before ? blocksOf(readPage(before.page)).filter(({ section }) => section === before.section) : [];
  if (before) expect(required, `${page} begins with ${before.page}`).to.not.have.length(0);
  return [...(before?.isFirstBlock ? required.slice(0, 1) : required), ...blocksOf(text)].filter(
    (block) => isDone(block) && block.notRun === null,
  );
}

describe("commands in the documentation", () => {
  let service: TestService;
  const folders: string[] = [];

  before(async () => {
    service = await startTestService();
  });
  after(async () => {
    await service?.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  /** Creates an app with credentials, as the first start of the service does. */
  async function newApp(name: string) {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name } });
    const { id } = body.app;
    const [{ id: userId }] = await service.db.query("SELECT person_id AS id FROM app_editor LIMIT 1");
    await service.rest("POST", `/v1/apps/${id}/editors`, { as: "admin", body: { userId } });
    const token = async (kind: string) =>
      (await service.rest("POST", `/v1/apps/${id}/tokens`, { as: "admin", body: { kind } })).body.token;
    const tokens = {
      ...service.tokens,
      ...{ api: await token("api"), viewer: await token("viewer"), live: await token("live") },
    };
    return { appId: Number(id), baseUrl: service.url, organizationId: service.organizationId, tokens };
  }

  /** Creates a reader's folder with credentials, and with pictures that a page uploads. */
  function newFolder(credentials: object): string {
    const folder = mkdtempSync(join(tmpdir(), "svc-docs-"));
    folders.push(folder);
    mkdirSync(join(folder, ".data"));
    writeFileSync(join(folder, ".data/credentials.json"), JSON.stringify(credentials));
    symlinkSync(join(ROOT, "docs"), join(folder, "docs"));
    return folder;
  }

  async function ask(document: string, appId: number): Promise<void> {
    if (!/^\s*subscription\b/.test(document)) {
      const { errors } = await service.graphql(document);
      expect(errors).to.equal(undefined);
      return;
    }
    const client = service.socket();
    const answers = client.iterate({ query: document });
    const next = answers.next();
    let seen = false;
    const end = () => {
      seen = true;
    };
    void next.then(end, end);
    // The API does not signal that the subscription has started, and it does not return runs from before its start.
    await until(async () => {
      if (!seen) await service.rest("POST", `/v3/apps/${appId}/actions/welcome/runWithResult`, { body: {} });
      return seen;
    });
    expect((await next).value?.errors).to.equal(undefined);
    await answers.return?.();
    await client.dispose();
  }

  for (const page of PAGES.filter((one) => steps(one).length > 0)) {
    it(`work unchanged in ${page}`, async () => {
      const credentials = await newApp(page);
      const { appId } = credentials;
      const folder = newFolder(credentials);
      const shell = pastedShell(folder);
      const local = (text: string) =>
        text
          .replaceAll("http://127.0.0.1:4000", service.url)
          .replaceAll("SVC_APP=1 ", `SVC_APP=${appId} `)
          .replaceAll('SVC_TOKEN="${SVC_TOKEN:-your token}"', `SVC_TOKEN=${credentials.tokens.editor}`)
          .replaceAll(/\bapps\/1\b/g, `apps/${appId}`)
          .replaceAll(/--app 1\b/g, `--app ${appId}`)
          .replaceAll(/\bappId: 1\b/g, `appId: ${appId}`);
      try {
        let printed = "";
        for (const { text, language, file, line, isResponse } of steps(page)) {
          const done = async () => {
            if (isResponse) {
              const wrong = differences(JSON.parse(text), lastJson(printed));
              if (wrong.length > 0)
                throw new Error(`the response differs: ${wrong.join(", ")} in ${printed.slice(-1_000)}`);
            } else if (file !== null) {
              mkdirSync(dirname(join(folder, file)), { recursive: true });
              writeFileSync(join(folder, file), text);
            } else if (language === "graphql") await ask(local(text), appId);
            else printed = await shell.paste(local(text));
          };
          await done().catch((error: Error) => expect.fail(`line ${line}: ${error.message}`));
        }
      } finally {
        await shell.end();
      }
    });
  }

  for (const { path, package: name, example } of NAMESPACES.filter((one) => one.example !== null)) {
    it(`give the result that the reference shows for ${path}`, async () => {
      const action = `reference-${path.replaceAll(".", "-")}`;
      const dependencies = name === null ? [] : [name];
      const body = {
        name: action,
        active: true,
        triggers: [{ trigger: "manual" }],
        dependencies,
        code: actionOf(example!.code),
      };
      expect((await service.rest("POST", "/v3/apps/1/actions", { body })).body.error).to.equal(undefined);
      const run = await service.rest("POST", `/v3/apps/1/actions/${action}/runWithResult`, { body: {} });
      expect(run.body.error).to.equal(undefined);
      expect(run.body.result).to.deep.equal(example!.result);
    });
  }

  it("list every metric of the service on the page of metrics", async () => {
    const shown = (await service.rest("GET", "/metrics")).body as string;
    const names = [...shown.matchAll(/^# HELP (svc_\w+)/gm)].map(([, name]) => name!);
    const page = readPage("docs/reference/metrics.md");
    expect(names.filter((name) => !page.includes(`\`${name}\``))).to.deep.equal([]);
    expect(names.length).to.be.above(20);
  });

  it("that are not run have a reason, in a mark before the block that names the test instead", () => {
    const marked = PAGES.flatMap((page) =>
      blocksOf(readPage(page))
        .filter(({ notRun }) => notRun !== null)
        .map((block) => ({ page, ...block })),
    );
    expect(marked.filter(({ language }) => !RUN.includes(language))).to.deep.equal([]);
    const dull = marked.filter(({ notRun }) => notRun!.split(" ").length < 4);
    expect(dull.map(({ page, line }) => `${page}:${line}`)).to.deep.equal([]);
    // The test would not run a block that names its language otherwise, such as bash.
    const languages = new Set(PAGES.flatMap((page) => blocksOf(readPage(page)).map(({ language }) => language)));
    expect(
      [...languages].filter((one) => !["sh", "graphql", "js", "jsx", "json", "yaml", "text", "html"].includes(one)),
    ).to.deep.equal([]);
  });
});
