/** Files of the gate that try a sample of their generated cases there (test/harness/samples.ts), and all of them here. */
process.env["ALL_SAMPLES"] = "1";
await import("../api/right-before-fault.test.js");
await import("../attacks/author-pages.test.js");
await import("../attacks/browser-after-the-end.test.js");
