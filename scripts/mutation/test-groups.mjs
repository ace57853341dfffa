/** Lists the modules to which the mutation run adds faults, and their tests. */

function createRuleGroup(name) {
  return { area: "rules", modules: [`rules/${name}`], tests: [`rules/${name}`] };
}

/** Modules of src, and the tests in test that must detect their faults. None of these tests starts a service. */
export const TEST_GROUPS = [
  ...[
    "alert-conditions",
    "concurrency",
    "integration-origins",
    "media-serving",
    "message-destination",
    "notification-scope",
  ].map(createRuleGroup),
  ...["setting-tiers", "ticks", "trigger-match"].map(createRuleGroup),
  { area: "rules", modules: ["rules/sign-in-wait"], tests: ["rules/sign-in-rules"] },
  { area: "access", modules: ["rules/entries/sign-in"], tests: ["rules/entries/sign-in"] },
  { area: "access", modules: ["rules/entries/entry-access"], tests: ["rules/entries/entry-access"] },
  {
    area: "access",
    modules: ["rules/caller-rules", "rules/entries/access-rules"],
    tests: ["rules/caller-rules", "rules/entries/entry-access"],
  },
  { area: "access", modules: ["operations/access/tokens"], tests: ["operations/unknown-tokens"] },
  {
    area: "secrets",
    modules: ["rules/secrets"],
    tests: ["rules/secrets-size", "engine/secret-scan", "attacks/secrets-forms"],
  },
  {
    area: "leases and fences",
    modules: ["operations/runs/finish", "operations/upkeep/lease"],
    tests: ["operations/endings", "operations/database-contact"],
  },
  {
    area: "limits",
    modules: ["operations/runs/slots", "operations/runs/dispatcher"],
    tests: ["operations/dispatcher", "attacks/slots"],
  },
  { area: "limits", modules: ["engine/rate-window"], tests: ["engine/rate-window"] },
  { area: "limits", modules: ["operations/access/request-limiter"], tests: ["operations/request-limiter"] },
];
