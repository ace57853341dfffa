/** Git connections over REST, as rows of the REST table. */
import { createHash } from "node:crypto";
import type { GitConnection } from "../../operations/git/git-connections.js";
import { flatShape } from "../../rules/unknown-fields.js";
import type { RestRequest } from "./request.js";
import type { Route } from "./route.js";

const GIT = "/v1/apps/:appId/git";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 22);

/** Returns a response with the git connection. `If-Match` compares the connection without its last pull. */
const replyWithGit = <T extends object>(q: RestRequest, { updatedAt, lastPull }: GitConnection, answer: T): T =>
  q.at({ updatedAt }, answer, lastPull && digestOf(JSON.stringify(lastPull)));

export const gitRoutes: readonly Route[] = [
  {
    method: "GET",
    path: GIT,
    answer: async ({ git }, q) => {
      const connection = await git.gitConnection(q.context, q.id("appId"));
      return connection ? replyWithGit(q, connection, { git: connection }) : { git: null };
    },
  },
  {
    method: "PUT",
    path: GIT,
    answer: async ({ git }, q) => {
      const connected = await git.connectGit(q.context, q.id("appId"), q.body, q.ifMatch());
      return replyWithGit(q, connected.git, connected);
    },
  },
  {
    method: "DELETE",
    path: GIT,
    answer: async ({ git }, q) => {
      await git.disconnectGit(q.context, q.id("appId"), q.ifMatch());
      return { status: "GIT_DISCONNECTED" };
    },
  },
  {
    method: "POST",
    path: `${GIT}/pull`,
    stateless: true,
    answer: async ({ git }, q) => {
      const { ref, commit } = q.object(flatShape(["ref", "commit"]));
      return { pull: await git.pullGit(q.context, q.id("appId"), ref, q.flag("plan"), commit) };
    },
  },
];
