/** Help for authors over REST (sample payloads, diagnostics, types), as rows of the REST table. */
import { refuseField } from "../../rules/fields.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const PRESETS_PATH = "/v3/apps/:appId/actions/:actionId/presets";

/** @throws REQUEST_INVALID */
function readPackageNames(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((element) => typeof element === "string")) return value;
  refuseField("dependencies", "an array of strings", value);
}

export const draftRoutes: readonly Route[] = [
  {
    method: "GET",
    path: PRESETS_PATH,
    answer: async ({ drafts }, q) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.payloadPresets(q.context, q.id("appId"), q.id("actionId")),
    }),
  },
  {
    method: "PUT",
    path: `${PRESETS_PATH}/:name`,
    answer: async ({ drafts }, q) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.savePayloadPreset(
        q.context,
        q.id("appId"),
        q.id("actionId"),
        q.param("name"),
        q.body,
        q.ifMatch(),
      ),
    }),
  },
  {
    method: "DELETE",
    path: `${PRESETS_PATH}/:name`,
    answer: async ({ drafts }, q) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.deletePayloadPreset(
        q.context,
        q.id("appId"),
        q.id("actionId"),
        q.param("name"),
        q.ifMatch(),
      ),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/problems",
    answer: async ({ drafts }, q) => {
      const { code, dependencies } = q.object(flatShape(["code", "dependencies"]));
      return {
        status: "CODE_CHECKED",
        problems: await drafts.codeProblems(
          q.context,
          q.id("appId"),
          code,
          q.check(() => readPackageNames(dependencies)) ?? [],
        ),
      };
    },
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/packages/declarations",
    answer: async ({ drafts }, q) => ({
      status: "DECLARATIONS_READ",
      files: await drafts.packageDeclarations(q.context, q.id("appId"), q.text("integrity")),
    }),
  },
];
