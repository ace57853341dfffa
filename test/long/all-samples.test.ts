/** Runs the test files that use test/harness/samples.ts with all of their cases; in the gate they run only some. */
process.env["ALL_SAMPLES"] = "1";
await import("../api/conditional-requests.test.js");
await import("../api/odd-values.test.js");
await import("../api/right-before-fault.test.js");
await import("../attacks/author-pages.test.js");
await import("../attacks/browser-after-the-end.test.js");
await import("../attacks/graphql-variables.test.js");
await import("../attacks/hidden-rows.test.js");
await import("../attacks/media-files.test.js");
await import("../attacks/secrets-forms.test.js");
await import("../engine/browser/lost-zygote.test.js");
await import("../engine/browser/request-guard.test.js");
await import("../operations/settings-reads.test.js");
await import("../rules/clock-changes.test.js");
await import("../source/source.test.js");
await import("../web/package-rejections.test.js");
await import("../web/studio-phone.test.js");
