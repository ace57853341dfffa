/** REST routes of git connections: entries for the route table in rest/routes.ts. */
import { createHash } from "node:crypto";
import type { GitConnection } from "../../operations/git/git-connections.js";
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const GIT_ROUTE = "/v1/apps/:appId/git";

const computeShortHash = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 22);

/**
 * Returns the response and sets its ETag. `If-Match` ignores the part of the ETag about the last pull, so that a pull causes no conflicts.
 */
const replyWithGit = <T extends object>(request: RestRequest, { updatedAt, lastPull }: GitConnection, answer: T): T =>
  request.setTag({ updatedAt }, answer, lastPull && computeShortHash(JSON.stringify(lastPull)));

export const gitRoutes: readonly Route[] = [
  {
    method: "GET",
    path: GIT_ROUTE,
    handle: async ({ git }, request) => {
      const connection = await git.gitConnection(request.context, request.pathId("appId"));
      return connection ? replyWithGit(request, connection, { git: connection }) : { git: null };
    },
  },
  {
    method: "PUT",
    path: GIT_ROUTE,
    handle: async ({ git }, request) => {
      const connectionChange = await git.connectGit(
        request.context,
        request.pathId("appId"),
        request.body,
        request.readExpectedVersions(),
      );
      return replyWithGit(request, connectionChange.git, connectionChange);
    },
  },
  {
    method: "DELETE",
    path: GIT_ROUTE,
    handle: async ({ git }, request) => {
      await git.disconnectGit(request.context, request.pathId("appId"), request.readExpectedVersions());
      return { status: "GIT_DISCONNECTED" };
    },
  },
  {
    method: "POST",
    path: `${GIT_ROUTE}/pull`,
    hasNoVersion: true,
    handle: async ({ git }, request) => {
      const { ref, commit } = request.bodyFields(createFlatShape(["ref", "commit"]));
      return {
        pull: await git.pullGit(request.context, request.pathId("appId"), ref, request.queryFlag("plan"), commit),
      };
    },
  },
];
