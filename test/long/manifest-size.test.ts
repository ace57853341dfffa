import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { CODE } from "../manifest/samples.js";

describe("a large manifest", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const path = () => `/v1/apps/${service.appId}/manifest`;
  const put = (body: unknown) => service.rest("PUT", path(), { as: "admin", body });
  const get = () => service.rest("GET", path(), { as: "admin" });

  it("can have many megabytes, and is rejected above 32 MB", async () => {
    const code = `${CODE}\n//${"x".repeat(900_000)}`;
    const actions = Array.from({ length: 12 }, (_, n) => ({ name: `big${n}`, code }));
    expect((await put({ version: 1, actions })).body.plan?.created).to.have.length(12);
    const read = await get();
    expect(read.body.actions).to.have.length(12);
    const large = { version: 1, actions: Array.from({ length: 38 }, (_, n) => ({ name: `big${n}`, code })) };
    expect((await put(large)).body.status).to.equal("PAYLOAD_TOO_LARGE");
  });
});
