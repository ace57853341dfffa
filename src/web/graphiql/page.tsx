/** The GraphiQL page with its editors and plugins. fetcher.ts sends the requests. */
import "../monaco-workers.js";
import "graphiql/style.css";
import "./page.css";
import { GraphiQL, HISTORY_PLUGIN } from "graphiql";
import { createRoot } from "react-dom/client";
import { serviceAddress } from "../service-address.js";
import { createFetcher } from "./fetcher.js";
import { FIRST_VISIT_HEADERS, FIRST_VISIT_QUERY } from "./first-visit.js";
import { createHeaderlessStorage } from "./storage.js";

const root = document.getElementById("graphiql");
if (!root) throw new Error("the page has no #graphiql element");

createRoot(root).render(
  <GraphiQL
    fetcher={createFetcher(serviceAddress("/graphql"))}
    plugins={[HISTORY_PLUGIN]}
    defaultEditorToolsVisibility="headers"
    storage={createHeaderlessStorage(localStorage)}
    shouldPersistHeaders={false}
    showPersistHeadersSettings={false}
    defaultHeaders={FIRST_VISIT_HEADERS}
    defaultTabs={[{ query: FIRST_VISIT_QUERY, headers: FIRST_VISIT_HEADERS }]}
  >
    <GraphiQL.Logo>
      <span className="svc-logo">App Actions</span>
    </GraphiQL.Logo>
  </GraphiQL>,
);
