/** The output of a service in its own process at log level trace: no token and no value of a setting. */
import { expect } from "chai";
import { startProcess } from "../harness/process.js";

const CANARY = "canary-of-a-setting-4c1f";

describe("the log of a service at its lowest level", () => {
  it("contains no token and no value of a setting, for any request", async () => {
    const service = startProcess({ LOG_LEVEL: "trace", ROLES: "api" });
    const url = await service.ready();
    const { appId, tokens } = service.credentials();
    const settings = `${url}/v1/apps/${appId}/settings`;
    const call = (method: string, address: string, token: string, body?: string) =>
      fetch(address, {
        method,
        headers: { "auth-token": token, "content-type": "application/json" },
        ...(body !== undefined && { body }),
      });
    for (const token of [...Object.values(tokens), `${tokens.editor}x`]) {
      for (const key of ["open", "_own", "__kept", "", "__proto__"]) {
        await call("POST", settings, token, JSON.stringify({ [key]: CANARY }));
      }
      await call("POST", settings, token, `{"_own": "${CANARY}`);
      await call("GET", settings, token);
      await call("GET", `${url}/v1/apps/${appId}/env.js`, token);
      await call("PUT", `${url}/v1/apps/${appId}`, token, JSON.stringify({ hooks: CANARY }));
      await call("POST", `${url}/graphql`, token, JSON.stringify({ query: `{ settings(appId: "${CANARY}") }` }));
    }
    service.signal("SIGTERM");
    await service.ended;
    const text = JSON.stringify(service.log) + service.stderr();
    await service.clean();
    expect(text).to.include("ready");
    expect(text).not.to.include(CANARY);
    for (const token of Object.values(tokens)) expect(text).not.to.include(token.slice(-43));
  });
});
