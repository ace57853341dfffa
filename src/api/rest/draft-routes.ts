/** REST routes that help authors (sample payloads, diagnostics, types): entries for the route table in rest/routes.ts. */
import { refuseField } from "../../rules/fields.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const PRESETS_PATH = "/v3/apps/:appId/actions/:actionId/presets";

function readPackageNames(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((element) => typeof element === "string")) return value;
  refuseField("dependencies", "an array of strings", value);
}

export const draftRoutes: readonly Route[] = [
  {
    method: "GET",
    path: PRESETS_PATH,
    handle: async ({ drafts }, request) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.payloadPresets(request.context, request.pathId("appId"), request.pathId("actionId")),
    }),
  },
  {
    method: "PUT",
    path: `${PRESETS_PATH}/:name`,
    handle: async ({ drafts }, request) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.savePayloadPreset(
        request.context,
        request.pathId("appId"),
        request.pathId("actionId"),
        request.pathText("name"),
        request.body,
        request.readExpectedVersions(),
      ),
    }),
  },
  {
    method: "DELETE",
    path: `${PRESETS_PATH}/:name`,
    handle: async ({ drafts }, request) => ({
      status: "PRESETS_LISTED",
      presets: await drafts.deletePayloadPreset(
        request.context,
        request.pathId("appId"),
        request.pathId("actionId"),
        request.pathText("name"),
        request.readExpectedVersions(),
      ),
    }),
  },
  {
    method: "POST",
    path: "/v3/apps/:appId/actions/problems",
    handle: async ({ drafts }, request) => {
      const { code, dependencies } = request.bodyFields(createFlatShape(["code", "dependencies"]));
      return {
        status: "CODE_CHECKED",
        problems: await drafts.codeProblems(
          request.context,
          request.pathId("appId"),
          code,
          request.check(() => readPackageNames(dependencies)) ?? [],
        ),
      };
    },
  },
  {
    method: "GET",
    path: "/v3/apps/:appId/packages/declarations",
    handle: async ({ drafts }, request) => ({
      status: "DECLARATIONS_READ",
      files: await drafts.packageDeclarations(request.context, request.pathId("appId"), request.queryText("integrity")),
    }),
  },
];
