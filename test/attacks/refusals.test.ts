/**
 * Tests repeated rejections. The service delays its responses to callers without a credential after some rejections, but not to other
 * callers.
 */
import { expect } from "chai";
import { RejectionDelay } from "../../src/operations/access/rejection-delay.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("rejections without a credential", () => {
  it("are immediate at first, then delayed, for a limited number per address; another address is not delayed", async () => {
    const rejectionDelay = new RejectionDelay({
      immediateRejections: 3,
      windowMs: 3_600_000,
      delayMs: 1,
      maxDelayed: 3,
      maxDelayedPerAddress: 2,
    });
    const order: string[] = [];
    const ask = (sender: string) =>
      rejectionDelay.wait(sender).then((mayBeSent) => order.push(`${sender} ${mayBeSent}`));
    for (let count = 0; count < 3; count += 1) await ask("a");
    expect(order.splice(0)).to.deep.equal(["a true", "a true", "a true"]);
    await Promise.all([ask("a"), ask("a"), ask("a"), ask("b")]);
    expect(order).to.deep.equal(["a false", "b true", "a true", "a true"]);
  });

  describe("in a service", () => {
    let service: TestService;
    before(async () => {
      service = await startTestService({ ROLES: "api" });
    });
    after(() => service.stop());

    longTest("have lower priority than requests with a credential, from the same address", async () => {
      const order: string[] = [];
      const ask = async (path: string, as: "editor" | null) => {
        const { http } = await service.rest(as ? "GET" : "POST", path, { as, ...(!as && { body: {} }) });
        order.push(as ? "served" : "refused", String(http));
      };
      const paths = ["/graphql", "/v3/apps/1/actions"];
      await Promise.all([
        ...Array.from({ length: 320 }, (_, n) => ask(paths[n % 2]!, null)),
        ask("/v3/apps/1/actions", "editor"),
      ]);
      expect(order.indexOf("served")).to.be.below(order.lastIndexOf("refused"));
      expect(order.filter((outcome) => outcome === "refused")).to.have.length(320);
    });
  });
});
