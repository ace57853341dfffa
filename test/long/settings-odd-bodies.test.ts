import { expect } from "chai";
import { sendOddBodies } from "../api/odd-bodies.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("the settings endpoints", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("accept or reject 20,000 unusual bodies without a 5xx or a polluted prototype, and keep what they accept", async () => {
    expect(await sendOddBodies(service, 20_000, Date.now() % 2 ** 31)).to.be.greaterThan(2_000);
  });
});
