import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const REFUSE_SESSIONS = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
  CREATE TRIGGER refusal BEFORE INSERT ON credential FOR EACH ROW EXECUTE FUNCTION refuse()`;

describe("a new person", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("is not created if the session fails; the same request succeeds later", async () => {
    const body = { email: "new@example.com", firstName: "N", lastName: "P" };
    const ask = () => service.rest("POST", "/v1/admin/users", { as: "admin", body });
    await service.db.query(REFUSE_SESSIONS);
    expect((await ask()).http).to.equal(500);
    await service.db.query("DROP TRIGGER refusal ON credential");
    const { http, body: made } = await ask();
    expect(http).to.equal(201);
    expect(made.user).to.include({ email: body.email });
  });
});
