import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { sendOddBodies } from "./odd-bodies.js";

describe("the settings endpoints", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("accept or reject 60 unusual bodies without a 5xx or a polluted prototype, and keep what they accept", async () => {
    expect(await sendOddBodies(service, 60, 1_763_600)).to.be.greaterThan(6);
  });
});
