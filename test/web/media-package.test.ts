import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { rows } from "../../src/data/database.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { mediaOf } from "../media/support.js";
import { launchChromium } from "./chromium.js";

const EVERY_MEDIA_CALL = `
  const { Folders, Files } = Svc.Media;
  const folder = await Folders.create({ name: "tour-" + where });
  const inner = await Folders.create({ name: "inner", parentId: folder.id });
  const [text] = await Files.upload({ folderId: folder.id, file: new Blob(["hello"]), name: "hello.txt" });
  const data = new FormData();
  data.append("file", new File(["one"], "one.txt"));
  data.append("file", new File(["two"], "two.txt"));
  const several = await Files.upload({ folderId: inner.id, data });
  const canvas = document.createElement("canvas");
  canvas.width = 300;
  canvas.height = 200;
  canvas.getContext("2d").fillRect(0, 0, 300, 200);
  const png = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const [drawn] = await Files.upload({ folderId: folder.id, file: png, name: "drawn.png" });
  const small = await createImageBitmap(await Files.getContents(drawn.id, { size: 30, format: "webp", quality: 60 }));
  const contents = await (await Files.getContents(text.id)).text();
  const renamed = await Files.update(text.id, { name: "renamed.txt", folderId: inner.id });
  const found = await Folders.search({ name: "RENAMED" });
  const listing = await Folders.get({ folderId: folder.id });
  const all = await Files.getAll();
  const got = await Files.get(text.id);
  await Folders.update(inner.id, { name: "outer", parentId: null });
  await Files.delete(drawn.id);
  const refusal = await Files.get(drawn.id).catch(({ status }) => status);
  await Folders.delete(folder.id);
  await Folders.delete(inner.id);
  return {
    contents, refusal,
    several: several.map(({ name }) => name),
    drawn: [drawn.contentType, drawn.size],
    small: [small.width, small.height],
    renamed: [renamed.name, got.folderId === inner.id],
    found: found.files.map(({ id }) => id === text.id),
    listing: [listing.folder.name === "tour-" + where, listing.folders.length, listing.files.map(({ name }) => name)],
    all: all.length,
  };`;

const EXPECTED_RESULTS = {
  contents: "hello",
  refusal: "FILE_NOT_FOUND",
  several: ["one.txt", "two.txt"],
  drawn: ["image/png", [300, 200]],
  small: [30, 20],
  renamed: ["renamed.txt", true],
  found: [true],
  listing: [true, 1, ["drawn.png"]],
  all: 4,
};

describe("Svc.Media", function () {
  this.timeout(180_000);
  let service: TestService;
  let browser: Browser;
  let page: Page;

  before(async () => {
    [service, browser] = await Promise.all([
      startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" }),
      launchChromium(),
    ]);
    page = await browser.newPage();
    // The test needs only a page of the service's origin, into which it loads the library.
    await page.goto(`${service.url}/health/live`);
    for (const path of ["/client/packages/svc-media.js", "/client/svc.js"])
      await page.addScriptTag({ url: service.url + path });
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  longTest("has all calls in a server action, as the app itself", async () => {
    const code = `async function execute() { const where = "server"; ${EVERY_MEDIA_CALL} }`;
    const body = { name: "tour", active: true, triggers: [{ trigger: "manual" }], dependencies: ["svc-media"], code };
    const created = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    expect(created.http, JSON.stringify(created.body)).to.equal(201);
    const { body: ran } = await service.rest("POST", `/v3/apps/${service.appId}/actions/tour/runWithResult`);
    expect(ran.result).to.deep.equal(EXPECTED_RESULTS);
    const [events] = await rows<{ count: number }>(
      service.db,
      "SELECT count(*) FROM log_event WHERE type = 'mediaFile.create' AND run_id IS NOT NULL",
    );
    expect(events!.count).to.equal(4);
  });

  it("needs no worker for calls without bytes", async () => {
    const code = `async function execute() {
      const { Folders, Files } = Svc.Media;
      const folder = await Folders.create({ name: "plain" });
      await Folders.update(folder.id, { name: "still plain" });
      const [{ name }] = (await Folders.search({ name: "STILL" })).folders;
      const refusal = await Files.get(999999).catch(({ status }) => status);
      await Folders.delete(folder.id);
      return [name, refusal, (await Files.getAll()).length, (() => {})["const" + "ructor"]("return typeof structuredClone")()];
    }`;
    const body = { name: "plain", active: true, triggers: [{ trigger: "manual" }], dependencies: ["svc-media"], code };
    expect((await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).http).to.equal(201);
    const { body: ran } = await service.rest("POST", `/v3/apps/${service.appId}/actions/plain/runWithResult`);
    expect(ran.result).to.deep.equal(["still plain", "FILE_NOT_FOUND", 0, "undefined"]);
  });

  it("has all calls in a page, with the page's token", async () => {
    await page.evaluate(
      `Svc.configure(${JSON.stringify({ apiUrl: service.url, appId: service.appId, token: service.tokens.editor })})`,
    );
    expect(await page.evaluate(`(async () => { const where = "page"; ${EVERY_MEDIA_CALL} })()`)).to.deep.equal(
      EXPECTED_RESULTS,
    );
  });

  it("can do in a visitor's page what the access rules grant, and reports a rejection like the rest of the library", async () => {
    const editor = mediaOf(service);
    const folderId = await editor.folder("open");
    await editor.rest("PUT", `/folders/${folderId}/accessRules`, [{ type: ["read", "create"], allow: "all" }]);
    await page.evaluate(
      `Svc.configure(${JSON.stringify({ apiUrl: service.url, appId: service.appId, token: service.tokens.live })})`,
    );
    const seen = await page.evaluate(`(async () => {
      const { Folders, Files } = Svc.Media;
      const [file] = await Files.upload({ folderId: ${folderId}, file: new Blob(["x"]), name: "x.txt" });
      const refused = (promise) => promise.then(() => "granted", (error) => ({ ...error }));
      return [
        (await Folders.get({ folderId: ${folderId} })).files.length,
        await (await Files.getContents(file.id)).text(),
        await refused(Files.delete(file.id)),
        await refused(Folders.create({ name: "mine" })),
        await refused(Files.getContents(999999)),
      ];
    })()`);
    const refusal = { status: "FORBIDDEN", error: "permission denied" };
    expect(seen).to.deep.equal([1, "x", refusal, refusal, refusal]);
  });

  it("names an invalid argument before anything is sent", async () => {
    const faults = await page.evaluate(`(async () => {
      const of = (call) => Promise.resolve().then(call).then(() => "sent", (error) => error.message);
      const { Folders, Files } = Svc.Media;
      return [await of(() => Files.upload({ file: "text" })), await of(() => Files.upload()), await of(() => Files.get("../../apps")), await of(() => Folders.delete(0))];
    })()`);
    const noFile = `Svc.Media.Files.upload: "file" must be a Blob, or "data" must be a FormData`;
    expect(faults).to.deep.equal([
      noFile,
      noFile,
      `a file's id must be a positive whole number (got "../../apps")`,
      "a folder's id must be a positive whole number (got 0)",
    ]);
  });
});
