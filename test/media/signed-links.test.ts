import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { expect } from "chai";
import { createKeyRing } from "../../src/engine/key-ring.js";
import { SignedMediaUrls } from "../../src/operations/media/links.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";
import {
  CALLERS_WITH_RULES,
  createFolderWithRules,
  issueMediaTokens,
  type Media,
  type MediaTokens,
  mediaOf,
  refusalStatusOf,
} from "./support.js";

describe("media: signed links", () => {
  let service: TestService;
  let editor: Media;
  let tokens: MediaTokens;
  let fileId: number;
  before(async () => {
    service = await useSharedService("api");
    editor = mediaOf(service);
    tokens = await issueMediaTokens(service);
    ({ fileId } = await createFolderWithRules(editor, []));
  });
  after(() => service.stop());

  const link = async (body: object = {}) => editor.rest("POST", `/files/${fileId}/link`, body);

  it("return one file's contents to everyone who has them, without a token in the URL", async () => {
    const before = Date.now();
    const { body } = await link();
    const after = Date.now();
    const secrets = [...tokens.values()].filter((token) => token !== null);
    expect(secrets.some((token) => body.url.includes(token))).to.equal(false);
    const answer = await fetch(body.url);
    expect([answer.status, await answer.text()]).to.deep.equal([200, "x"]);
    expect(answer.headers.get("cache-control")).to.equal("private, no-cache");
    expect(Date.parse(body.expiresAt)).to.be.within(before + 3_599_000, after + 3_600_000);
  });

  it("end at their time", async () => {
    const { url } = (await link({ expiresIn: 1 })).body;
    await until(async () => (await fetch(url)).status === 401);
  });

  it("are valid only for what was signed", async () => {
    const { url } = (await link({ expiresIn: 100 })).body;
    const other = await editor.upload("other", "y");
    const later = Number(new URL(url).searchParams.get("expires")) + 1;
    const forged = [
      url.replace(`/files/${fileId}/`, `/files/${other.id}/`),
      url.replace(/expires=\d+/, `expires=${later}`),
      url.replace(/signature=./, (text: string) => `signature=${text.endsWith("A") ? "B" : "A"}`),
      url.replace(/signature=.*/, "signature="),
      url.replace(/signature=.*/, `signature=${"A".repeat(43)}`),
      url.replace(`/apps/${service.appId}/`, "/apps/999/"),
      url.replace("/contents", ""),
    ];
    for (const address of forged) expect((await fetch(address)).status, address).to.equal(401);
    expect((await fetch(url, { method: "DELETE" })).status).to.be.greaterThan(400);
  });

  it("end with the file", async () => {
    const file = await editor.upload("short-lived", "x");
    const { url } = (await editor.rest("POST", `/files/${file.id}/link`)).body;
    expect((await fetch(url)).status).to.equal(200);
    await editor.rest("DELETE", `/files/${file.id}`);
    expect((await fetch(url)).status).to.equal(401);
  });

  it("are made by callers who may read, for a week at most", async () => {
    for (const expiresIn of [0, -1, 604_801, 1.5, "1h", {}]) {
      const { http, body } = await link({ expiresIn });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(/^expiresIn must be/);
    }
    for (const who of CALLERS_WITH_RULES) {
      expect((await mediaOf(service, tokens.get(who) ?? null).rest("POST", `/files/${fileId}/link`)).http).to.equal(
        refusalStatusOf(who),
      );
    }
  });

  it("end at their time, although their signature is right", async () => {
    const master = randomBytes(32);
    const ring = createKeyRing({ keys: [master], path: "" });
    const grants = { requireRight: () => undefined };
    const createdAt = new Date(Date.now() - 3_600_000);
    const file = { id: 2, createdAt, rules: [] };
    const links = new SignedMediaUrls({
      ring,
      mediaRights: { resolveAccess: async () => grants },
      files: { findOrThrow: async () => file },
      baseUrl: "http://127.0.0.1",
    } as unknown as ConstructorParameters<typeof SignedMediaUrls>[0]);
    const { url, expiresAt } = await links.create({} as Parameters<SignedMediaUrls["create"]>[0], 1, 2, 60);
    const { searchParams } = new URL(url);
    const claim = { expires: searchParams.get("expires")!, signature: searchParams.get("signature")! };
    expect(links.isValid(1, file, claim)).to.equal(true);
    expect([links.isValid(1, { ...file, id: 3 }, claim), links.isValid(2, file, claim)]).to.deep.equal([false, false]);
    // After a restore from a backup, another file can get the same ID.
    expect(links.isValid(1, { id: 2, createdAt: new Date() }, claim)).to.equal(false);
    // Links of release 0.1 stay valid if they were certainly signed after the file was created.
    const key = Buffer.from(hkdfSync("sha256", master, "", "svc media link 1", 32));
    const oldSignature = createHmac("sha256", key).update(`1/2/${claim.expires}`).digest("base64url");
    const oldClaim = { ...claim, signature: oldSignature };
    expect(links.isValid(1, file, oldClaim)).to.equal(false);
    const weekBefore = Date.parse(expiresAt) - 7 * 86_400_000;
    expect(links.isValid(1, { id: 2, createdAt: new Date(weekBefore) }, oldClaim)).to.equal(false);
    expect(links.isValid(1, { id: 2, createdAt: new Date(weekBefore - 1) }, oldClaim)).to.equal(true);
    const now = Date.now;
    const validities = [-1, 0].map((ms) => {
      Date.now = () => new Date(expiresAt).getTime() + ms;
      return links.isValid(1, file, claim);
    });
    Date.now = now;
    expect(validities).to.deep.equal([true, false]);
  });
});
