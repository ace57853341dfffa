import { expect } from "chai";
import type { Role } from "../../src/rules/roles.js";
import { PASSPHRASE } from "../harness/people.js";
import type { Answer, Call, TestService } from "../harness/service.js";

export interface Person {
  id: number;
  email: string;
  token: string;
}

export const cookieOf = ({ headers }: Answer): string =>
  /auth_token=([^;]*)/.exec(headers.get("set-cookie") ?? "")?.[1] ?? "";
export const tokenIn = (link: string): string => link.slice(link.indexOf("#token=") + "#token=".length);
export const outcomeOf = ({ http, body }: Answer) => [http, body.status];

/**
 * Returns functions that send requests about members. @param started returns the service and its administrator; called only after both have
 * started
 */
export function createMemberCalls(started: () => { service: TestService; administrator: Person }) {
  const as = (token: string | null, method: string, path: string, body?: object): Promise<Answer> =>
    started().service.rest(method, path, { as: token, ...(body && { body }) } as Call);

  async function organization(name = "Harbour"): Promise<{ id: number; appId: number }> {
    const { body } = await as(started().administrator.token, "POST", "/v1/organizations", { name });
    const app = await as(started().administrator.token, "POST", "/v1/admin/apps", {
      name,
      organizationId: body.organization.id,
    });
    return { id: body.organization.id, appId: app.body.app.id };
  }

  let made = 0;
  const address = () => {
    made += 1;
    return `member${made}@example.com`;
  };

  const invite = (by: string, id: number, data: object) => as(by, "POST", `/v1/organizations/${id}/invitations`, data);
  const accept = (link: string, more: object = {}, by: string | null = null) =>
    as(by, "POST", "/v1/auth/invitations/accept", {
      token: tokenIn(link),
      firstName: "Grace",
      lastName: "Hopper",
      passphrase: PASSPHRASE,
      ...more,
    });

  /** Invites a person without an account, who accepts the invitation. */
  async function join(id: number, role: Role, appId?: number): Promise<Person> {
    const email = address();
    const { body } = await invite(started().administrator.token, id, { email, role, appId });
    const joined = await accept(body.link);
    expect(joined.http, JSON.stringify(joined.body)).to.equal(200);
    return { id: joined.body.user.id, email, token: cookieOf(joined) };
  }

  const members = (id: number) => `/v1/organizations/${id}/members`;
  const appMembers = (id: number) => `/v1/apps/${id}/members`;

  async function rolesAt(path: string): Promise<Record<number, Role>> {
    const { body } = await as(started().administrator.token, "GET", path);
    return Object.fromEntries(body.members.map(({ user, role }: { user: Person; role: Role }) => [user.id, role]));
  }

  return { as, organization, address, invite, accept, join, members, appMembers, rolesAt };
}
