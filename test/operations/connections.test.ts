import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { PROCESS_ROLES, type ProcessRole } from "../../src/config.js";
import { computeMaxConnections } from "../../src/operations/connections.js";

const PAGE = readFileSync(fileURLToPath(new URL("../../../docs/operate/several-machines.md", import.meta.url)), "utf8");

describe("the connections of a process", () => {
  const most = (roles: readonly ProcessRole[]) => computeMaxConnections({ roles: new Set(roles) });

  it("are as many as the page on several machines says", () => {
    for (const roles of [["api"], ["runner"], ["api", "runner"]] as const)
      expect(PAGE).to.contain(`| \`api\`, \`runner\`, or both | ${most(roles)} |`);
    for (const roles of [["scheduler"], ["api", "scheduler"], ["scheduler", "runner"], PROCESS_ROLES] as const)
      expect(PAGE).to.contain(`| \`scheduler\`, alone or with other roles | ${most(roles)} |`);
  });
});

it("the systemd unit never gives up starting the service", () => {
  const unit = readFileSync(fileURLToPath(new URL("../../../deploy/svc-app-actions.service", import.meta.url)), "utf8");
  expect(unit).to.match(/^StartLimitIntervalSec=0$/m);
  expect(unit).to.match(/^Restart=on-failure$/m);
});
