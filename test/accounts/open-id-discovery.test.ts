import { expect } from "chai";
import { OpenId } from "../../src/operations/accounts/open-id.js";

describe("Discovery of an OpenID provider that does not answer", () => {
  it("ends all sign-ins that wait for it as OVERLOADED", async () => {
    const provider = { id: "gone", issuer: "http://localhost:1", clientId: "x", clientSecret: "x" };
    const openId = new OpenId({ providers: [provider] } as unknown as ConstructorParameters<typeof OpenId>[0]);
    const start = () => openId.start("gone", "http://localhost/callback", "").catch((error: unknown) => error);
    const errors = (await Promise.all([start(), start()])) as { status?: string }[];
    expect(errors.map(({ status }) => status)).to.deep.equal(["OVERLOADED", "OVERLOADED"]);
  });
});
