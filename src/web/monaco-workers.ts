/** Tells Monaco where its three workers are, before Monaco loads. The build puts their hashed names in WORKER_FILES. */
import { serviceAddress } from "./service-address.js";

declare const WORKER_FILES: { editor: string; json: string; graphql: string };

Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string): Worker {
      const { json, graphql, editor } = WORKER_FILES;
      const file = label === "json" ? json : label === "graphql" ? graphql : editor;
      return new Worker(serviceAddress(file), { name: label });
    },
  },
});
