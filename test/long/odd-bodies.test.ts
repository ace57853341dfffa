import { expectNoServerErrors } from "../actions/odd-bodies.js";
import { publishApp } from "../actions/support.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("invalid and unusual bodies for create and update, at length", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    await publishApp(service);
  });
  after(() => service.stop());

  it("are accepted or rejected, never a 5xx: 20,000 of them", async () => {
    await expectNoServerErrors(service, 20_000);
  });
});
