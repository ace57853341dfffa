import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { expectNoServerErrors } from "./odd-bodies.js";
import { publishApp } from "./support.js";

describe("invalid and unusual bodies for create and update", () => {
  let service: TestService;
  before(async () => {
    service = await useSharedService("api");
    await publishApp(service);
  });
  after(() => service.stop());

  it("are rejected or accepted, never a 5xx: 50 of them", async () => {
    await expectNoServerErrors(service, 50);
  });

  for (const [title, text] of [
    ["no JSON", "{"],
    ["nested deeper than a stack", "[".repeat(100_000) + "]".repeat(100_000)],
    ["a field nested deeper than a stack", `{"name":"x","code":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    [
      "a filter nested deeper than a stack",
      `{"name":"x","code":"async function execute(){}","environment":"any","triggers":[{"trigger":"analytics",
        "where":{"type":"analytics.event","data":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}}]}`,
    ],
    ["nothing", ""],
  ] as const) {
    it(`are rejected as an error of the request: ${title}`, async () => {
      const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
        headers: { "content-type": "application/json" },
        body: text,
      });
      expect(http).to.equal(400);
      expect(body).to.have.keys("status", "error");
    });
  }

  it("are rejected above 1 MB: PAYLOAD_TOO_LARGE", async () => {
    const body = { name: "large", code: "/".repeat(1024 * 1024) };
    const answer = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    expect(answer.http).to.equal(413);
    expect(answer.body.status).to.equal("PAYLOAD_TOO_LARGE");
  });
});
