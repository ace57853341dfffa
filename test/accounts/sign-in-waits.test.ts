/** Tests that the wait of a network address after failed sign-ins is short again after a day without attempts. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("the wait after failed sign-ins", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  /** Signs in ten times with different accounts that do not exist. Returns the wait in seconds after that. */
  async function failTenTimes(): Promise<number> {
    const signIn = (email: string) =>
      service.rest("POST", "/v1/auth/sign-in", { as: null, body: { email, passphrase: "not the passphrase" } });
    for (let at = 0; at < 10; at += 1) await signIn(`unknown${at}@example.com`);
    return Number((await signIn("unknown@example.com")).headers.get("retry-after"));
  }

  it("is the shortest one again after a day without attempts", async () => {
    expect(await failTenTimes()).to.be.within(1, 60);
    const age = (interval: string) =>
      service.db.query(
        "UPDATE sign_in_failure SET level = 5, blocked_until = NULL, updated_at = now() - $1::interval",
        [interval],
      );
    await age("23 hours");
    expect(await failTenTimes()).to.be.above(60);
    await age("25 hours");
    expect(await failTenTimes()).to.be.within(1, 60);
  });
});
