/** The way of a run to other services, and the facts of its requests that are stored with it. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import type { PageRun } from "../../engine/browser/run.js";
import type { RequestRecord, Requests } from "../requests/run-requests.js";
import type { Measures } from "../watch/measures.js";
import type { Printer } from "./console.js";
import type { HeldRun, RunCode } from "./run-facts.js";
import type { RunTrace } from "./run-traces.js";
import type { RunSecrecy } from "./secrecy.js";

const KEEP = "UPDATE run SET requests = $2 WHERE id = $1";

/** Facts of a run that its requests add to. */
interface Details {
  hosts: Set<string>;
  trace: RunTrace;
  requests: readonly RequestRecord[];
}

interface Begun {
  run: HeldRun;
  action: RunCode;
  kept: RunSecrecy;
  printer: Printer;
  details: Details;
}

export function createOutgoingWay(options: {
  db: DataSource;
  requests: Requests;
  measures: Pick<Measures, "requestEnded">;
}) {
  const { db, requests, measures } = options;
  return {
    begin({ run: { appId }, action, kept, printer, details }: Begun): Pick<PageRun, "outgoing"> {
      const { environment, integrationOrigins = [] } = action;
      const { send, records } = requests.begin({
        appId,
        environment,
        origins: integrationOrigins,
        findInUrl: kept.findInUrl,
        print: printer.print,
        onHost: (host) => details.hosts.add(host),
        onHop(origin, method) {
          const end = details.trace.request(origin, method);
          return (facts) => {
            measures.requestEnded(facts);
            end(facts);
          };
        },
      });
      details.requests = records;
      return { outgoing: send };
    },

    async keep({ id }: HeldRun, { requests: sent }: Details): Promise<void> {
      if (sent.length > 0) await rows(db, KEEP, [id, JSON.stringify(sent)]);
    },
  };
}
