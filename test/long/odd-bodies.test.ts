import { expectNoServerErrors } from "../actions/odd-bodies.js";
import { publishApp } from "../actions/support.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("invalid and unusual bodies of requests that create or update", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await publishApp(service);
  });
  after(() => service.stop());

  it("cause no 5xx in 20,000 requests", async () => {
    await expectNoServerErrors(service, 20_000);
  });
});
