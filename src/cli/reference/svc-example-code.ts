/** Code of the longer examples on the reference page of `Svc`. svc-examples.ts contains their results. */

const joinLines = (...lines: string[]): string => lines.join("\n");

export const GREET_ACTION_CODE = "async function execute({ payload }) { return 'Hello ' + payload.name; }";

export const RUN_AND_REQUEST_EXAMPLE = joinLines(
  'await Svc.App.V3.Actions.run("greet", { name: "Ben" });',
  'const greeting = await Svc.App.V3.Actions.runWithResult("greet", { name: "Ann" });',
  "const response = Svc.App.V3.Actions.response({ status: 201, body: { greeting } });",
  "const order = await Svc.App.V3.Actions.request({",
  '  url: "https://api.example.com/orders",',
  '  method: "POST",',
  "  json: { seats: 2 },",
  '  responseType: "json",',
  "});",
  "return [greeting, typeof response, order.status, order.body];",
);

export const ACTIONS_EXAMPLE = joinLines(
  "// only in a page for yourself: visitors must never get this token",
  'Svc.configure({ apiUrl: "http://127.0.0.1:4000", appId: 1, token: "the token of an editor" });',
  "const { Actions } = Svc.App.V3;",
  "const greet = await Actions.create({",
  '  name: "hello",',
  "  active: true,",
  '  triggers: [{ trigger: "manual" }],',
  `  code: "${GREET_ACTION_CODE}",`,
  "});",
  'await Actions.update(greet.id, { description: "Greets" });',
  'const greeting = await Actions.runWithResult(greet.id, { name: "Ann" });',
  "const { description } = await Actions.getById(greet.id);",
  "const { actions } = await Actions.get({ limit: 1 });",
  "const { logs } = await Actions.getLogs({ id: greet.id, limit: 10 });",
  "await Actions.publish(greet.id);",
  "await Actions.unpublish(greet.id);",
  "await Actions.remove(greet.id);",
  "return [greeting, description, actions.length, logs.length];",
);

export const DATA_SOURCES_EXAMPLE = joinLines(
  'const entries = [{ seat: "1A" }, { seat: "1B" }];',
  'const { id } = await Svc.DataSources.create({ name: "seats", columns: ["seat"], entries });',
  'const seats = await Svc.DataSources.connectByName("seats");',
  "const { length: count } = await seats.find();",
  "const { name } = await Svc.DataSources.getById(id);",
  'const renamed = await Svc.DataSources.update(id, { name: "places" });',
  "const places = await Svc.DataSources.connect(id);",
  'await places.insert({ seat: "2A" });',
  "const all = await Svc.DataSources.get();",
  "await Svc.DataSources.delete(id);",
  "return { count, names: [name, renamed.name], isListed: all.some((one) => one.id === id) };",
);

export const DATA_SOURCE_CONNECTION_EXAMPLE = joinLines(
  'await Svc.DataSources.create({ name: "bookings", columns: ["seat", "price"] });',
  'const bookings = await Svc.DataSources.connectByName("bookings");',
  "const feed = bookings.subscribe({ where: { price: { $gt: 20 } } }, ({ inserted }) => console.log(inserted));",
  'await bookings.replaceWith([{ seat: "1A", price: 20 }]);',
  'await bookings.append([{ seat: "1B", price: 30 }, { seat: "1C", price: 30 }]);',
  'const last = await bookings.insert({ seat: "2A", price: 40 });',
  "await bookings.update(last.id, { price: 45 }, { ifUpdatedAt: last.updatedAt });",
  "const { data } = await bookings.findById(last.id);",
  'const cheapest = await bookings.findOne({ order: [["data.price", "ASC"]] });',
  "const { pagination } = await bookings.find({ limit: 1, includePagination: true });",
  "const firstPage = await bookings.findWithCursor({ limit: 3 });",
  "const secondPage = await firstPage.next();",
  'const prices = await bookings.getIndex("price");',
  'const { seat: seats } = await bookings.getIndexes(["seat", "price"]);',
  "await bookings.removeById(last.id);",
  "const { deletedCount } = await bookings.remove({ where: { price: 30 } });",
  'await bookings.commit({ entries: [{ id: cheapest.id, data: { price: 25 } }, { data: { seat: "3A" } }], extend: true });',
  'const { inserted } = await bookings.import("seat,price\\n9A,90\\n");',
  "feed.unsubscribe();",
  "return {",
  "  price: data.price,",
  "  cheapest: cheapest.data.seat,",
  "  total: pagination.total,",
  "  pages: [firstPage.length, secondPage.length],",
  "  prices: prices.toSorted(),",
  "  seats: seats.length,",
  "  deletedCount,",
  "  inserted,",
  "};",
);

export const DATA_SOURCE_CONNECTION_RESULT = {
  price: 45,
  cheapest: "1A",
  total: 4,
  pages: [3, 1],
  prices: [20, 30, 45],
  seats: 4,
  deletedCount: 2,
  inserted: 1,
};

export const MEDIA_FILES_EXAMPLE = joinLines(
  'const [file] = await Svc.Media.Files.upload({ file: new File(["a,b"], "data.csv") });',
  'await Svc.Media.Files.update(file.id, { name: "seats.csv" });',
  "const { name, contentType } = await Svc.Media.Files.get(file.id);",
  "const text = await (await Svc.Media.Files.getContents(file.id)).text();",
  "const { url } = await Svc.Media.Files.link(file.id, { expiresIn: 600 });",
  "const all = await Svc.Media.Files.getAll();",
  "await Svc.Media.Files.delete(file.id);",
  'return [name, contentType, text, url.startsWith("http") && all.length > 0];',
);

export const MEDIA_FOLDERS_EXAMPLE = joinLines(
  'const folder = await Svc.Media.Folders.create({ name: "reports" });',
  'const { name } = await Svc.Media.Folders.update(folder.id, { name: "letters" });',
  "const { files } = await Svc.Media.Folders.get({ folderId: folder.id });",
  'const { folders } = await Svc.Media.Folders.search({ name: "letter" });',
  "await Svc.Media.Folders.delete(folder.id);",
  "return [name, files.length, folders.length];",
);

export const COMMUNICATE_EXAMPLE = joinLines(
  'const to = [{ email: "ann@example.com" }];',
  'const attachments = [{ name: "report.csv", content: "a,b" }];',
  "const { sendEmail, batchSendEmail, sendSMS, batchSendSMS, sendPushNotification } = Svc.Communicate.init();",
  'const email = await sendEmail({ to, subject: "Hello {{name}}", text: "See the attachment.", attachments }, { name: "Ann" });',
  'const [batched] = await batchSendEmail([{ options: { to, subject: "Report", text: "It is ready." } }]);',
  'const sms = await sendSMS({ to: "+4915112345678", body: "Your table is ready." });',
  'const [second] = await batchSendSMS([{ to: "+4915112345678", body: "Your table is ready." }]);',
  'const push = await sendPushNotification({ data: { title: "Hello" } });',
  "return [email, batched, sms, second, push].map(({ status }) => status);",
);

export const NOTIFICATIONS_EXAMPLE = joinLines(
  "const { insert, batchInsert, update, get, remove } = Svc.Notifications.init();",
  'const first = await insert({ status: "published", data: { title: "Hello" } });',
  'const { data } = await update(first.id, { extendData: { message: "Ann" } });',
  'const drafts = await batchInsert([{ data: { title: "One" } }, { data: { title: "Two" } }]);',
  'const { entries } = await get({ status: "draft", limit: 10 });',
  "for (const { id } of [first, ...drafts]) await remove(id);",
  "return [first.status, data, entries.length];",
);

export const COMMUNICATE_PAGE_EXAMPLE = joinLines(
  'await Svc.Communicate.composeEmail({ to: [{ email: "ann@example.com" }], subject: "Two seats" });',
  'return Svc.Communicate.shareURL({ url: "https://example.com/seats", title: "Seats" });',
);

export const NOTIFICATIONS_PAGE_EXAMPLE = joinLines(
  "const { unread, stream, markNotificationsAsRead, subscribe, unsubscribe } = Svc.Notifications;",
  "const end = stream((notification) => console.log(notification.data.title));",
  "end();",
  'const ids = "all";',
  "await markNotificationsAsRead(ids);",
  "const device = await subscribe();",
  "const wasSubscribed = await unsubscribe();",
  "return [await unread.count(), typeof device.id, wasSubscribed];",
);

export const SESSION_PAGE_EXAMPLE = joinLines(
  'const where = { Email: "ada@example.org", Password: "ada@example.org password" };',
  'const { entries } = await Svc.Session.authorize({ passport: "dataSource", dataSourceName: "Users", where });',
  'await Svc.Session.set({ locale: "en-GB" });',
  "const after = await Svc.Session.logout();",
  'const email = "ada@example.org";',
  "await Svc.Session.verify({ email });",
  'const code = prompt("The code in the e-mail");',
  "const { session } = await Svc.Session.verify({ email, code });",
  "return [entries.dataSource.data.Email, after.entries ?? null, Object.keys(session.entries.dataSource.verified)];",
);

export const AI_EXAMPLE = joinLines(
  "const { message } = await Svc.AI.completions({",
  '  model: "gpt-4o-mini",',
  '  messages: [{ role: "user", content: "Greet a guest." }],',
  "});",
  'const { vectors } = await Svc.AI.embeddings({ model: "text-embedding-3-small", input: ["red", "blue"] });',
  'const { images } = await Svc.AI.image({ model: "gpt-image-1", prompt: "a lighthouse" });',
  'const wav = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";',
  'const file = { name: "order.wav", contentType: "audio/wav", data: wav };',
  'const { text } = await Svc.AI.transcribe({ model: "whisper-1", file });',
  "return [message.content, vectors.length, images[0].contentType, text];",
);

export const ENCRYPTION_EXAMPLE = joinLines(
  "const { generateKey, deriveKey, encrypt, decrypt, hash, hmac, verifyHmac, randomUUID, randomBytes } = Svc.Encryption;",
  "const key = await generateKey();",
  'const other = await deriveKey("a long password", randomBytes(16));',
  "const texts = [",
  '  await decrypt(await encrypt("hello", key), key),',
  '  await decrypt(await encrypt("hello", other), other),',
  "];",
  'const signature = await hmac("order 5", "the secret");',
  'const isValid = await verifyHmac("order 5", "the secret", signature);',
  'return { texts, hash: await hash("a"), isValid, lengths: [randomUUID().length, randomBytes(9).length] };',
);

export const AUDIO_EXAMPLE = joinLines(
  'const wav = "data:audio/wav;base64,UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";',
  "await Svc.Audio.tone({ seconds: 0.01 });",
  "await Svc.Audio.play(wav, { volume: 0.5 });",
  "const { duration, channels } = await Svc.Audio.decode(wav);",
  "return [duration, channels.length, channels[0].length];",
);
