/** The page of GraphiQL, an editor for GraphQL queries, with its plugins. fetcher.ts sends the requests. */
import "../monaco-workers.js";
import "graphiql/style.css";
import "./page.css";
import { GraphiQL, HISTORY_PLUGIN } from "graphiql";
import { createRoot } from "react-dom/client";
import { copyText } from "../copy-text.js";
import { resolveServiceUrl } from "../service-address.js";
import { createGraphiqlFetcher } from "./fetcher.js";
import { FIRST_VISIT_HEADERS, FIRST_VISIT_QUERY } from "./first-visit.js";
import { createHeaderlessStorage } from "./storage.js";

const rootElement = document.getElementById("graphiql");
if (!rootElement) throw new Error("the page has no #graphiql element");

createRoot(rootElement).render(
  <GraphiQL
    fetcher={createGraphiqlFetcher(resolveServiceUrl("/graphql"))}
    plugins={[HISTORY_PLUGIN]}
    defaultEditorToolsVisibility="headers"
    storage={createHeaderlessStorage(localStorage)}
    shouldPersistHeaders={false}
    showPersistHeadersSettings={false}
    defaultHeaders={FIRST_VISIT_HEADERS}
    // On pages without HTTPS, GraphiQL itself cannot copy.
    onCopyQuery={(query) => {
      if (!navigator.clipboard) void copyText(query);
    }}
    defaultTabs={[{ query: FIRST_VISIT_QUERY, headers: FIRST_VISIT_HEADERS }]}
  >
    <GraphiQL.Logo>
      <span className="svc-logo">App Actions</span>
    </GraphiQL.Logo>
  </GraphiQL>,
);
