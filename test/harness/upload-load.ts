/**
 * Process that sends concurrent uploads again and again until it is ended. Arguments: URL, megabytes of each upload, number of concurrent
 * uploads.
 */
const [url, megabytes, count] = process.argv.slice(2) as [string, string, string];
const head = '--cut\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n';
const body = Buffer.concat([
  Buffer.from(head),
  Buffer.alloc(Number(megabytes) * 2 ** 20, 7),
  Buffer.from("\r\n--cut--\r\n"),
]);
const headers = { "content-type": "multipart/form-data; boundary=cut", "auth-token": process.env["TOKEN"]! };

async function sendUploadsRepeatedly(): Promise<never> {
  for (;;) await (await fetch(url, { method: "POST", headers, body })).text();
}

await Promise.all(Array.from({ length: Number(count) }, sendUploadsRepeatedly));
