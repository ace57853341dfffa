/** Runs all cases of the files that run only a sample in the gate (test/harness/samples.ts). */
process.env["ALL_SAMPLES"] = "1";
await import("../api/conditional-requests.test.js");
await import("../api/odd-values.test.js");
await import("../api/right-before-fault.test.js");
await import("../attacks/author-pages.test.js");
await import("../attacks/browser-after-the-end.test.js");
