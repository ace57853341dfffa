/** Tests the errors of a dependency that this machine cannot read or bundle at the moment. */
import { expect } from "chai";
import { SandboxUnavailableError } from "../../src/engine/bundler/fault.js";
import type { AddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { type ActionError, getHttpStatus } from "../../src/errors.js";
import { toBundlingError } from "../../src/operations/packages/packages.js";
import { PackageRegistry } from "../../src/operations/packages/registry.js";

describe("the registry's description of a package", () => {
  it("is requested again if this machine could not read it in time", async () => {
    const connections = {} as AddressCheckedConnections;
    const registry = new PackageRegistry({
      url: "https://registry.example.com",
      token: null,
      connections,
      readLimitMs: 1,
    });
    const asking = { dependency: "busy-day", signal: AbortSignal.timeout(60_000) };
    const refusal = await registry.choose(asking, "busy-day", Buffer.from("{}"), "").catch((error: unknown) => error);
    const { status, message, details } = refusal as ActionError;
    expect(status).to.equal("DEPENDENCY_UNRESOLVED");
    expect(message).to.match(/"busy-day" cannot be fetched now/);
    expect(details.retryAfter).to.equal(30);
  });
});

describe("a package that the service cannot bundle", () => {
  it("is rejected with 503, its name and advice for the operator", () => {
    const refusal = toBundlingError("lodash@4", new SandboxUnavailableError()) as ActionError;
    expect([refusal.status, getHttpStatus(refusal)]).to.deep.equal(["DEPENDENCY_UNRESOLVED", 503]);
    expect(refusal.message).to.match(/"lodash@4" cannot be bundled now: .*user namespaces.*operator.*NPM_SANDBOX=off/);
  });

  it("is rejected without the advice to set NPM_SANDBOX=off if it is set already", () => {
    const { message } = toBundlingError("lodash@4", new SandboxUnavailableError(true)) as ActionError;
    expect(message).to.include("even without user namespaces (NPM_SANDBOX=off)");
    expect(message).to.not.include("set NPM_SANDBOX");
  });
});
