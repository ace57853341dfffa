/**
 * Runs the commands of the docs in a shell. `npm test` uses ALWAYS_RUN_PAGES and every 32nd other page; the long tests use all pages. All
 * pages use one service; each page has its own app and folder.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { stop as stopEsbuild, transform } from "esbuild";
import { parseNamespaceCalls, readLibraryDeclarations, wrapInAction } from "../../src/cli/reference/svc-calls.js";
import { SVC_NAMESPACES } from "../../src/cli/reference/svc-examples.js";
import { STATUS } from "../../src/errors.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { type ExampleHosts, startExampleHosts } from "./example-hosts.js";
import { type Block, beginningOf, blocksOf, isAction, PAGES, ROOT, readPage } from "./pages.js";
import { pastedShell } from "./pasted-shell.js";
import { differences, lastJson, missingLines } from "./response.js";

const RUN_LANGUAGES = ["sh", "graphql"];
/** True if the block is a response whose `status` is that of an error. */
const isErrorResponse = (block: Block | undefined): boolean =>
  block?.isResponse === true && Object.hasOwn(STATUS, JSON.parse(block.text).status ?? "");
const isDone = (block: Block) =>
  RUN_LANGUAGES.includes(block.language) ||
  block.file !== null ||
  block.isResponse ||
  block.isOutput ||
  isAction(block);

const PAGES_OF_OTHER_TESTS: Readonly<Record<string, string>> = {
  "docs/reference/rest-routes.md": "test/api/openapi.test.ts sends the requests",
  "docs/reference/svc-calls.md": "the examples run below, and in test/web/own-pages.test.ts",
  "docs/internals/run-lifecycle.md": "test/docs/limits-in-order.test.ts compares the states",
};

/** Pages whose commands start the most processes. Only the long tests run them; `npm test` runs some of the same commands elsewhere. */
const LONG_PAGES = [
  "docs/reference/command-line.md",
  "docs/reference/data-sources.md",
  "docs/reference/git.md",
  "docs/reference/media.md",
];

/** Pages that `npm test` always runs. Without them, `npm test` has no test of the results of queries. */
const ALWAYS_RUN_PAGES = ["README.md", "docs/reference/data-source-queries.md"];

/** Returns the blocks of a page, preceded by those that the page requires. */
function readSteps(page: string): Block[] {
  const text = readPage(page);
  const before = beginningOf(text);
  const required = before ? blocksOf(readPage(before.page)).filter(({ section }) => section === before.section) : [];
  if (before) expect(required, `${page} begins with ${before.page}`).to.not.have.length(0);
  const pageBlocks = page in PAGES_OF_OTHER_TESTS ? [] : blocksOf(text);
  return [...(before?.isFirstBlock ? required.slice(0, 1) : required), ...pageBlocks].filter(
    (block) => isDone(block) && block.notRun === null,
  );
}

/** True for code that a reader would put into a web page. */
const isFragment = (block: Block) =>
  block.language === "js" && block.file === null && block.notRun === null && !isAction(block);

const DEPENDENCIES = SVC_NAMESPACES.flatMap(({ path, package: name }) =>
  name === null ? [] : [[path.split(".").slice(0, 2).join("."), name] as const],
);

describe("the documentation", () => {
  let service: TestService;
  let exampleHosts: ExampleHosts;
  const folders: string[] = [];

  before(async () => {
    exampleHosts = await startExampleHosts();
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __ai: exampleHosts.ai } });
  });
  after(async () => {
    await stopEsbuild();
    await service?.stop();
    await exampleHosts?.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

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
  function createReaderFolder(credentials: object): string {
    const folder = mkdtempSync(join(tmpdir(), "svc-docs-"));
    folders.push(folder);
    mkdirSync(join(folder, ".data"));
    writeFileSync(join(folder, ".data/credentials.json"), JSON.stringify(credentials));
    symlinkSync(join(ROOT, "docs"), join(folder, "docs"));
    return folder;
  }

  /** Saves the code as an action, and runs it unless it sends requests to other services. */
  async function run(appId: number, name: string, code: string): Promise<unknown> {
    const dependencies = DEPENDENCIES.filter(([path]) => code.includes(path)).map(([, dependency]) => dependency);
    const integrationOrigins = [...code.matchAll(/url: "(https:\/\/[^/"]+)/g)].map(([, origin]) => origin);
    const body = { name, active: true, triggers: [{ trigger: "manual" }], dependencies, integrationOrigins, code };
    expect((await service.rest("POST", `/v3/apps/${appId}/actions`, { body })).body.error).to.equal(undefined);
    if (integrationOrigins.length > 0) return null;
    const path = `/v3/apps/${appId}/actions/${name}/runWithResult`;
    const { error, result } = (await service.rest("POST", path, { body: {} })).body;
    expect(error).to.equal(undefined);
    return result;
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
    // The API does not signal a subscription's start, and sends only later runs. So the test starts runs until the client receives one.
    await until(async () => {
      if (!seen) await service.rest("POST", `/v3/apps/${appId}/actions/welcome/runWithResult`, { body: {} });
      return seen;
    });
    expect((await next).value?.errors).to.equal(undefined);
    await answers.return?.();
    await client.dispose();
  }

  const pages = PAGES.filter(
    (page) => ![...ALWAYS_RUN_PAGES, ...LONG_PAGES].includes(page) && readSteps(page).length > 0,
  );
  for (const page of [...ALWAYS_RUN_PAGES, ...sampleOf(pages, 1, 32), ...LONG_PAGES]) {
    const test = LONG_PAGES.includes(page) ? longTest : it;
    test(`has commands that work unchanged in ${page}`, async () => {
      const credentials = await newApp(page);
      const { appId } = credentials;
      const folder = createReaderFolder(credentials);
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
        const blocks = readSteps(page);
        for (const [index, block] of blocks.entries()) {
          const { text, language, file, line, isResponse, isOutput } = block;
          const done = async () => {
            if (isResponse) {
              const wrong = differences(JSON.parse(text), lastJson(printed));
              if (wrong.length > 0)
                throw new Error(`the response differs: ${wrong.join(", ")} in ${printed.slice(-1_000)}`);
            } else if (isOutput) {
              expect(missingLines(text, printed), printed).to.deep.equal([]);
            } else if (file !== null) {
              mkdirSync(dirname(join(folder, file)), { recursive: true });
              writeFileSync(join(folder, file), text);
            } else if (isAction(block)) await run(appId, `line-${line}`, text);
            else if (language === "graphql") await ask(local(text), appId);
            else printed = await shell.paste(local(text), isErrorResponse(blocks[index + 1]));
          };
          await done().catch((error: Error) => expect.fail(`line ${line}: ${error.message}`));
        }
      } finally {
        await shell.end();
      }
    });
  }

  it("describes each call of the client library, and shows it in an example", () => {
    const sources = readLibraryDeclarations(ROOT);
    for (const { type, path, example, pageExample } of SVC_NAMESPACES) {
      const shown = `${example?.code}\n${pageExample?.code}`;
      const isShown = (name: string) => new RegExp(`\\b${name}\\b`).test(shown);
      const calls = parseNamespaceCalls(sources, type);
      expect(calls, path).to.not.deep.equal([]);
      expect(calls.filter(({ comment }) => comment === "").map(({ name }) => `${path}.${name}`)).to.deep.equal([]);
      expect(calls.filter(({ name }) => !isShown(name)).map(({ name }) => `${path}.${name}`)).to.deep.equal([]);
    }
  });

  const shownResults = SVC_NAMESPACES.filter((namespace) => namespace.example !== null);
  for (const { path, package: name, example } of sampleOf(shownResults, 0, 32)) {
    it(`shows the actual result of the example for ${path} in the reference`, async () => {
      const action = `reference-${path.replaceAll(".", "-")}`;
      const dependencies = name === null ? [] : [name];
      const save = async (fields: object) => {
        const body = { active: true, triggers: [{ trigger: "manual" }], ...fields };
        expect((await service.rest("POST", "/v3/apps/1/actions", { body })).body.error).to.equal(undefined);
      };
      if (example!.calls) await save(example!.calls);
      const code = exampleHosts.replaceApiOrigin(wrapInAction(example!.code));
      const integrationOrigins = code.includes(exampleHosts.apiOrigin) ? [exampleHosts.apiOrigin] : [];
      await save({ name: action, dependencies, integrationOrigins, code });
      const run = await service.rest("POST", `/v3/apps/1/actions/${action}/runWithResult`, { body: {} });
      expect(run.body.error).to.equal(undefined);
      expect(run.body.result).to.deep.equal(example!.result);
    });
  }

  it("lists every metric of the service on the page of metrics", async () => {
    const shown = (await service.rest("GET", "/metrics")).body as string;
    const names = [...shown.matchAll(/^# HELP (svc_\w+)/gm)].map(([, name]) => name!);
    const page = readPage("docs/reference/metrics.md");
    expect(names.filter((name) => !page.includes(`\`${name}\``))).to.deep.equal([]);
    expect(names.length).to.be.above(20);
  });

  it("has only blocks that a test runs or compares, or whose mark gives the reason why not", () => {
    const blocks = PAGES.filter((page) => !(page in PAGES_OF_OTHER_TESTS)).flatMap((page) =>
      blocksOf(readPage(page)).map((block) => ({ page, ...block })),
    );
    const where = ({ page, line, language }: Block & { page: string }) => `${page}:${line} ${language}`;
    const blocksWithoutReason = blocks.filter(({ notRun }) => notRun !== null && notRun.split(" ").length < 4);
    expect(blocksWithoutReason.map(where)).to.deep.equal([]);
    const isChecked = (block: Block) => isDone(block) || block.notRun !== null || isFragment(block);
    expect(blocks.filter((block) => !isChecked(block)).map(where)).to.deep.equal([]);
  });

  it("has fragments of pages with valid syntax, and only names calls that the client library has", async () => {
    const sources = readLibraryDeclarations(ROOT);
    const calls = new Set(
      SVC_NAMESPACES.flatMap(({ path, type }) =>
        parseNamespaceCalls(sources, type).map(({ name }) => `${path}.${name}`),
      ),
    ).add("Svc.Notifications.unread.count");
    for (const page of PAGES.filter((path) => path !== "CHANGELOG.md")) {
      const text = readPage(page);
      const named = [...text.matchAll(/\bSvc(?:\.\w+)+(?=\()/g)].map(([name]) => name);
      expect(
        named.filter((name) => !calls.has(name)),
        page,
      ).to.deep.equal([]);
      for (const { text: code, line } of page in PAGES_OF_OTHER_TESTS ? [] : blocksOf(text).filter(isFragment)) {
        await transform(code, { format: "esm", target: "esnext" }).catch((error: Error) =>
          expect.fail(`${page}:${line}: ${error.message}`),
        );
      }
    }
  });
});
